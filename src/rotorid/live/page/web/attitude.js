// Attitude of a quadrotor, viewed from the south and slightly above: east is right, north is away from the viewer

const EYE = 28 * (Math.PI / 180), FAR = 5.2, GROUND = -1.1, ARM = 0.82, DISC = 0.4;
const ROTORS = [[1, 1], [1, -1], [-1, 1], [-1, -1]].map(([x, y]) => [x * ARM, y * ARM, 0.1]);
const RING = Array.from({ length: 28 }, (_, k) => [Math.cos((k / 14) * Math.PI) * DISC, Math.sin((k / 14) * Math.PI) * DISC, 0]);
const NOSE = [[0.62, 0, 0.03], [0.28, 0.15, 0.03], [0.28, -0.15, 0.03]];
const HULL = [[0.3, 0.17], [0.3, -0.17], [-0.34, -0.2], [-0.34, 0.2]];

// Rotates a body vector to the world frame
function rotate([w, x, y, z], [a, b, c]) {
  const p = 2 * (y * c - z * b), q = 2 * (z * a - x * c), r = 2 * (x * b - y * a);
  return [a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p];
}

const plus = (a, b) => a.map((v, k) => v + b[k]);

// Roll (positive to the right), pitch (positive nose up) and heading (from north to east), degrees, of a quaternion w x y z (FLU to ENU)
export function angles([w, x, y, z]) {
  const degrees = 180 / Math.PI;
  const roll = Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) * degrees;
  const down = Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))) * degrees;
  const yaw = Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * degrees;
  return { roll, pitch: -down, heading: (((90 - yaw) % 360) + 360) % 360 };
}

// Interpolates between two attitudes; part: 0 to 1
export function interpolate(from, to, part) {
  const sign = from.reduce((sum, v, k) => sum + v * to[k], 0) < 0 ? -1 : 1;
  const mixed = from.map((v, k) => v + part * (sign * to[k] - v)), size = Math.hypot(...mixed);
  return size > 1e-6 ? mixed.map((v) => v / size) : to;
}

export class Attitude {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.current = null;
    this.resize();
  }

  resize() {
    const { width, height } = this.canvas.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    Object.assign(this, { width, height, ratio });
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const size = Math.min(width / 4, height / 3.15) * FAR;
    this.project = ([e, n, u]) => {
      const depth = FAR + n * Math.cos(EYE) - u * Math.sin(EYE);
      const up = u * Math.cos(EYE) + n * Math.sin(EYE);
      return [width / 2 + (size * e) / depth, height * 0.38 - (size * up) / depth, depth];
    };
  }

  shape(points, fill, stroke, width = 1) {
    const c = this.context;
    c.beginPath();
    points.map(this.project).forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
    if (fill) {
      c.closePath();
      c.fillStyle = fill;
      c.fill();
    }
    if (stroke) {
      c.strokeStyle = stroke;
      c.lineWidth = width;
      c.stroke();
    }
  }

  draw(quaternion, theme) {
    const c = this.context, at = (v) => rotate(quaternion, v);
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    this.ground(theme);
    const discs = ROTORS.map((rotor) => RING.map((p) => at(plus(rotor, p))));
    for (const disc of discs) this.shape(disc.map(([e, n]) => [e, n, GROUND]), theme.shadow);
    this.shape(HULL.map(([a, b]) => at([a, b, 0])).map(([e, n]) => [e, n, GROUND]), theme.shadow);
    const parts = ROTORS.map((rotor, k) => ({
      depth: this.project(at(rotor))[2],
      draw: () => {
        const front = rotor[0] > 0;
        this.shape([at(rotor.map((v) => 0.25 * v)), at(rotor)], null, theme.soft, 4);
        this.shape([...discs[k], discs[k][0]], front ? theme.front : theme.back, front ? theme.nose : theme.soft, 1.5);
      },
    }));
    parts.push({ depth: this.project(at([0, 0, 0]))[2], draw: () => this.hull(at, theme) });
    parts.sort((a, b) => b.depth - a.depth).forEach((part) => part.draw());
  }

  ground(theme) {
    const c = this.context, reach = 1.5;
    for (let k = -3; k <= 3; k++) {
      const s = (k / 3) * reach;
      this.shape([[s, -reach, GROUND], [s, reach, GROUND]], null, theme.grid);
      this.shape([[-reach, s, GROUND], [reach, s, GROUND]], null, theme.grid);
    }
    const east = reach + 0.2;
    this.shape([[east, -1.25, GROUND], [east, -0.55, GROUND]], null, theme.soft, 1.5);
    this.shape([[east - 0.09, -0.6, GROUND], [east, -0.35, GROUND], [east + 0.09, -0.6, GROUND]], theme.soft);
    const [x, y] = this.project([east, -0.05, GROUND]);
    c.font = theme.font;
    c.fillStyle = theme.soft;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.fillText("N", x, y);
  }

  hull(at, theme) {
    const top = HULL.map(([a, b]) => at([a, b, 0.1])), bottom = HULL.map(([a, b]) => at([a, b, -0.1]));
    const sides = HULL.map((_, k) => [top[k], top[(k + 1) % 4], bottom[(k + 1) % 4], bottom[k]]);
    const faces = [...sides.map((f) => [f, theme.soft]), [bottom, theme.soft], [top, theme.hull]];
    const mean = (face) => face.reduce((sum, p) => sum + this.project(p)[2], 0) / face.length;
    faces.sort((a, b) => mean(b[0]) - mean(a[0])).forEach(([face, fill]) => this.shape([...face, face[0]], fill, theme.panel));
    this.shape(NOSE.map(at), theme.nose);
  }
}
