"""The recorded commands, a line each: `name: arguments of rotorid`.

A command runs in a folder of its own, and every file that it leaves there is read. In its arguments,

    {name}           is the folder of the case of that name, which runs first
    {flights}        is the folder of recorded flights; without it the case is left out
    {made}           is the folder of the inputs below
    {cut:FILE:N}     is the first N bytes of a recorded flight, which reads as a log that was cut off
    {repository}     is the root of this repository

Names of cases must stay as they are: cases are compared by name.
"""

CASES = """
sim-loop: simulate --trajectory loop --mass-profile steps --seed 3 --duration 12 -o flight.parquet
sim-quad1: simulate --airframe quadrotor-x --sensors px4 --seed 1 --duration 16 -o quad1.parquet
sim-quad2: simulate --airframe quadrotor-x --sensors px4 --seed 2 --duration 16 -o quad2.parquet
sim-quad3: simulate --airframe quadrotor-x --sensors clean --seed 3 --duration 16 -o quad3.csv
sim-crazyflie: simulate --airframe crazyflie-2.1 --sensors crazyflie --seed 4 --duration 12 -o flight.parquet
sim-x8: simulate --airframe x8-coaxial --sensors rough --seed 5 --duration 12 -o flight.mcap
sim-lemniscate: simulate --trajectory lemniscate --mass-profile linear --seed 6 --duration 8 -o flight.csv
airframes: airframes
airframe-quad: airframes quadrotor-x
airframe-plus: airframes quadrotor-plus
airframe-crazyflie: airframes crazyflie-2.1
airframe-sih: airframes px4-sih-quad
airframe-ardupilot: airframes ardupilot-sitl-x
inspect-quad: inspect {sim-quad1}/quad1.parquet --json
inspect-loop: inspect {sim-loop}/flight.parquet --json
convert-csv: convert {sim-quad1}/quad1.parquet flight.csv
convert-parquet: convert {sim-quad3}/quad3.csv flight.parquet
convert-mcap: convert {sim-loop}/flight.parquet flight.mcap
track-quad: track {sim-quad1}/quad1.parquet -a quadrotor-x -e ekf,ukf,adaptive -o out
track-ekf: track {sim-loop}/flight.parquet -a simulated-quad -e ekf --mcap -o out
track-ukf: track {sim-loop}/flight.parquet -a simulated-quad -e ukf -o out
track-msckf: track {sim-loop}/flight.parquet -a simulated-quad -e msckf -o out
track-swls: track {sim-loop}/flight.parquet -a simulated-quad -e swls -o out
track-adaptive: track {sim-loop}/flight.parquet -a simulated-quad -e adaptive -o out
track-bare: track {sim-loop}/flight.parquet -a simulated-quad -e ekf,swls --system multirotor-bare -o out
track-known-mass: track {sim-quad1}/quad1.parquet -a quadrotor-x -e ekf --known-mass 1.5 -o out
calibrate: calibrate {sim-quad1}/quad1.parquet {sim-quad2}/quad2.parquet -a quadrotor-x --mass 1.5 -o out.toml
compare: compare {sim-loop}/flight.parquet -a simulated-quad --prior-error -0.3 -o out
compare-bare: compare {sim-loop}/flight.parquet -a simulated-quad -e ekf,ukf --system multirotor-bare -o out
wrench-mo: wrench {sim-quad1}/quad1.parquet -a quadrotor-x -o out
wrench-acceleration: wrench {sim-quad1}/quad1.parquet -a quadrotor-x --observer acceleration --gain 5 -o out
wrench-ekf: wrench {sim-quad1}/quad1.parquet -a quadrotor-x --observer ekf --mcap -o out
wrench-x8: wrench {sim-x8}/flight.mcap -a x8-coaxial -o out
identify-all: identify {sim-quad1}/quad1.parquet -a quadrotor-x --no-fly-back -o out
identify-two: identify {sim-quad1}/quad1.parquet {sim-quad2}/quad2.parquet -a quadrotor-x -o out
identify-mass: identify {sim-quad2}/quad2.parquet -a quadrotor-x --known mass --free thrust_curve,inertia,drag -o out
identify-held-out: identify {sim-quad1}/quad1.parquet --held-out {sim-quad3}/quad3.csv -a quadrotor-x --mass 1.5+-0.02 -o out
identify-crazyflie: identify {sim-crazyflie}/flight.parquet -a crazyflie-2.1 -o out
fly-back: fly-back {sim-quad2}/quad2.parquet -a {identify-all}/out/airframe.toml -p quadrotor-x -o out.toml --report page.html
fly-back-against: fly-back {sim-quad3}/quad3.csv -a {identify-all}/out/airframe.toml -p quadrotor-x --against quadrotor-x --between 2:14 -o out.toml
plan-px4: plan -a quadrotor-x --for inertia,motor_time_constant --duration 20 -o out
plan-mission: plan -a quadrotor-x --for drag --limits speed=3,tilt=20deg,box=4x4x2 --duration 20 --autopilot ardupilot --criterion A --home 47.4,8.5 --heading 30 --no-simulate -o out
plan-crazyflie: plan -a crazyflie-2.1 --for inertia --duration 15 --autopilot crazyflie --known thrust_curve --no-simulate -o out
learn: learn {sim-quad1}/quad1.parquet -a quadrotor-x --epochs 2 --horizon 1 -o out
learn-split: learn {sim-quad2}/quad2.parquet -a quadrotor-x --architecture split --epochs 2 --horizon 1 --no-identify -o out
learn-none: learn {sim-quad1}/quad1.parquet {sim-quad2}/quad2.parquet -a quadrotor-x --architecture none -o out
wrench-learned: wrench {sim-quad2}/quad2.parquet -a quadrotor-x --model {learn}/out -o out
lpv-ranges: lpv --ranges {made}/ranges.toml -a quadrotor-plus --control -o out
lpv-local: lpv --ranges {made}/ranges.toml -a quadrotor-plus --control --method local --decay 0.2 -o out
lpv-flight: lpv {sim-quad1}/quad1.parquet -a quadrotor-x --subsystem full --components 4 -o out
fit-dlm: fit-dlm {made}/series.csv --column y --trend 2 --seasonal 12 --regress x --starts 3 -o out
fit-linear: fit-linear {sim-quad1}/quad1.parquet --inputs rotor_command --outputs body_rate_x,body_rate_y --order 4 --delay 1 -o out
fit-dlm-arma: fit-dlm {made}/series.csv --column y --arma 1,0 --forecast 10 --starts 2 -o out
fleet: fleet {sim-quad1}/quad1.parquet {sim-quad2}/quad2.parquet {sim-quad3}/quad3.csv -a quadrotor-x -w 1 --limit 100000 -o out
fleet-identify: fleet {sim-quad1}/quad1.parquet {sim-quad2}/quad2.parquet -a quadrotor-x -w 1 --known mass --identify --limit 100000 -o out
dataset: dataset out -n 1 --duration 4 -w 1 --seed 2
dataset-hard: dataset out -n 2 --duration 6 -w 1 --seed 2 --preset hard -t loop,lemniscate -m steps
compare-dataset: compare {dataset-hard}/out -e ekf,adaptive -o out
demo: demo -o out
c-ekf: export ekf -a simulated-quad --system multirotor-bare -o out
c-ukf: export ukf -a quadrotor-x --rotor-input thrust -o out
c-msckf: export msckf -a quadrotor-x --precision float -o out
c-swls: export swls -a quadrotor-x --system multirotor -o out
c-adaptive: export adaptive -a quadrotor-x --flight {sim-quad1}/quad1.parquet -o out
c-mo: export mo -a quadrotor-x --gain 5 -o out
c-nemo: export nemo -a quadrotor-x --model {learn}/out -o out
c-acceleration: export acceleration -a quadrotor-x --name accelerations -o out
casadi-multirotor: export multirotor --as casadi -a quadrotor-x --force -o out
casadi-bare: export multirotor-bare --as casadi -a simulated-quad --force -o out
casadi-rigid: export rigid-multirotor --as casadi -a quadrotor-x --force -o out
to-px4: export px4 -a {identify-two}/out/airframe.toml --force -o out
to-ardupilot: export ardupilot -a {identify-two}/out/airframe.toml --force -o out
to-gazebo: export gazebo -a {identify-two}/out/airframe.toml --force -o out
to-mujoco: export mujoco -a {identify-two}/out/airframe.toml --force -o out
to-urdf: export urdf -a {identify-two}/out/airframe.toml --force -o out
to-acados: export acados -a {identify-two}/out/airframe.toml --force -o out
to-python-control: export python-control -a {identify-two}/out/airframe.toml --force -o out
to-header: export header -a {identify-two}/out/airframe.toml --force -o out
live-ekf: live {cut:px4_sih/dev.tlog:3000000} -a px4-sih-quad --speed 0 --record recording.mcap
live-adaptive: live {cut:ardupilot_sitl/dev.tlog:2500000} -a ardupilot-sitl-x -e adaptive --no-wrench --speed 0 --record recording.mcap
inspect-ulog: inspect {flights}/px4_samples/sample_log_small.ulg --json
inspect-ulog-motor: inspect {flights}/px4_faults/motor_failure.ulg --json
inspect-bin: inspect {flights}/ardupilot_delorean/00000003.BIN --json
inspect-tlog: inspect {cut:ardupilot_sitl/dev.tlog:2500000} --json
inspect-crazyflie: inspect {flights}/crazyflie_crazyswarm2/log201 --json
inspect-mapped: inspect {flights}/nanobench/B2_circle_medium_rep1.csv --mapping {repository}/examples/nanobench.toml --json
inspect-ulog-real: inspect {flights}/px4_samples/sample.ulg --json
inspect-ulog-events: inspect {flights}/px4_samples/sample_px4_events.ulg --json
inspect-ulog-tagged: inspect {flights}/px4_samples/sample_logging_tagged_and_default_params.ulg --json
inspect-ulog-brownout: inspect {flights}/px4_faults/battery_brownout.ulg --json
inspect-ulog-failure: inspect {flights}/px4_faults/ekf_failure.ulg --json
inspect-bin-propeller: inspect {flights}/ardupilot_propeller/cut25_hover_1.BIN --json
inspect-crazyflie-arpl: inspect {flights}/crazyflie_arpl/log10 --json
inspect-crazyflie-poseless: inspect {flights}/crazyflie_crazyswarm2/log146 --json
inspect-betaflight: inspect {flights}/betaflight/LOG00001.BFL --json
inspect-mat: inspect {flights}/neurobem/20210218172600seg1.mat --json
convert-ulog: convert {cut:px4_sih/dev.ulg:7000000} flight.parquet
convert-bin: convert {flights}/ardupilot_delorean/00000006.BIN flight.parquet
convert-tlog: convert {cut:ardupilot_sitl/dev.tlog:2500000} flight.parquet
convert-crazyflie: convert {flights}/crazyflie_crazyswarm2/log201 flight.parquet
convert-mapped: convert {flights}/nanobench/B5_helix_rep1.csv flight.parquet --mapping {repository}/examples/nanobench.toml
track-ulog: track {cut:px4_sih/dev.ulg:7000000} -a px4-sih-quad --truth {flights}/px4_sih/dev_truth.csv -e ekf,adaptive -o out
track-bin: track {flights}/ardupilot_delorean/00000006.BIN -a ardupilot-sitl-x -o out
track-tlog: track {cut:ardupilot_sitl/dev.tlog:2500000} -a ardupilot-sitl-x -e ekf -o out
track-crazyflie: track {flights}/crazyflie_crazyswarm2/log201 -a crazyflie-crazyswarm2 -o out
track-mapped: track {flights}/nanobench/B3_figure8_fast_rep1.csv -a crazyflie-2.1 --mapping {repository}/examples/nanobench.toml -e ekf -o out
calibrate-crazyflie: calibrate {flights}/crazyflie_crazyswarm2/log158 {flights}/crazyflie_crazyswarm2/log162 -a crazyflie-crazyswarm2 --mass 0.032 -o out.toml
wrench-ulog: wrench {cut:px4_sih/dev.ulg:7000000} -a px4-sih-quad -o out
identify-ulog: identify {cut:px4_sih/dev.ulg:7000000} -a px4-sih-quad -o out
identify-bin: identify {flights}/ardupilot_delorean/00000006.BIN -a ardupilot-sitl-x -o out
identify-mapped: identify {flights}/nanobench/B2_circle_medium_rep1.csv -a crazyflie-2.1 --mapping {repository}/examples/nanobench.toml -o out
identify-crazyflie-arpl: identify {flights}/crazyflie_arpl/log16 -a crazyflie-2.1 --no-fly-back -o out
identify-propeller: identify {flights}/ardupilot_propeller/cut5_line_1.BIN -a quadrotor-x -o out
identify-failure: identify {flights}/px4_faults/ekf_failure.ulg -a quadrotor-x -o out
fleet-crazyflies: fleet {flights}/crazyflie_crazyswarm2/log146 {flights}/crazyflie_crazyswarm2/log158 {flights}/crazyflie_crazyswarm2/log170 -a crazyflie-crazyswarm2 -w 1 --limit 100000 -o out
study-lpv: reproduce lpv --quick -o out
study-loop: reproduce loop --quick -o out
study-sesame: reproduce sesame --quick -o out
study-identify: reproduce identify --quick -o out
study-nemo: reproduce nemo --quick -o out
"""  # noqa: E501

RANGES = """
roll = [-0.5, 0.5]
pitch = [-0.5, 0.5]
roll_rate = [-2.0, 2.0]
pitch_rate = [-2.0, 2.0]
yaw_rate = [-1.0, 1.0]
rotor_speed = [150.0, 320.0]
mass = [0.9, 1.5]
specific_thrust = [7.0, 13.0]
"""
"""Of the cases of lpv."""

VOLATILE = (
    r"seconds",
    r"\b(training|update) time\b",
    r"\bversions?\b",
    r"sha256",
)
"""Regular expressions of keys whose numbers are no results: times that something took, versions, digests of inputs."""

UNSTABLE: tuple[tuple[str, str], ...] = ()
"""Patterns of cases and regular expressions of keys that differ between two runs of the same program: not compared."""
