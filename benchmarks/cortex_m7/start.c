/* Start-up of a Cortex-M7 of QEMU, and a clock that counts its ticks of 40 ns: 40 instructions at 1 ns each. */
#include <stdint.h>
#include <time.h>

#define TIMER_CONTROL (*(volatile uint32_t *)0x40000000)
#define TIMER_VALUE (*(volatile uint32_t *)0x40000004)
#define TIMER_RELOAD (*(volatile uint32_t *)0x40000008)
#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88)
#define MOST 0xFFFFFFFFu

extern void _start(void);

void reset(void) {
  COPROCESSORS |= 0xFu << 20; /* floating point */
  TIMER_RELOAD = MOST;
  TIMER_VALUE = MOST;
  TIMER_CONTROL = 1; /* on */
  _start();
}

static void fault(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))0x20400000, reset, fault, fault, fault, fault, fault};

void _init(void) {}
void _fini(void) {}

clock_t clock(void) { return MOST - TIMER_VALUE; } /* the timer counts down */
