// The page: memory over time with a brush, who held it as a flame graph, tables. All data is in the page.
import uPlot from "uplot";
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";
import { flameTree, highestIn, nearest, sizeText, timeText } from "./model.js";
import { drawSections } from "./sections.js";
import { drawTables } from "./tables.js";

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const binary = Array.from({ length: 50 }, (_, i) => 2 ** i);  // steps of the axis of bytes
const theme = document.documentElement.dataset;
let gpu = 0;
let plot = null;
let flame = null;

function drawFlame(snapshot, when) {
  const tree = flameTree(data, snapshot);
  at("flame-title").textContent = `${data.gpus[gpu].title}: ${sizeText(snapshot.live)} live ${when}`;
  at("flame").replaceChildren();
  at("flame-detail").textContent = "";
  flame = flamegraph()
    .width(at("flame").clientWidth)
    .cellHeight(18)
    .inverted(true)
    .minFrameSize(1)
    .transitionDuration(0)
    .setLabelHandler((d) => `${d.data.name}: ${sizeText(d.value)}`)
    .onHover((d) => { at("flame-detail").textContent = `${d.data.name}: ${sizeText(d.value)}`; });
  select("#flame").datum(tree).call(flame);
  if (at("search").value) flame.search(at("search").value);
}

function atPeak() {
  const g = data.gpus[gpu];
  drawFlame(g.at_peak, `at the peak, ${timeText(g.peak_time)} after the first call`);
}

function atTime(seconds) {
  const s = nearest(data.gpus[gpu].snapshots, seconds * 1e9);
  if (s) drawFlame(s, `${timeText(s.time)} after the first call`);
}

function inRange(from, to) {
  const g = data.gpus[gpu];
  const s = highestIn(g, from * 1e9, to * 1e9);
  if (s) drawFlame(s, `at the highest moment told between ${timeText(from * 1e9)} and ${timeText(to * 1e9)}`);
}

// A vertical line, and its words, where the peak was.
function markPeak(u) {
  const g = data.gpus[gpu];
  const x = u.valToPos(g.peak_time / 1e9, "x", true);
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = color("--mark");
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.textAlign = x > bbox.left + bbox.width / 2 ? "right" : "left";
  ctx.fillText(` peak ${sizeText(g.peak)} `, x, bbox.top + 12 * devicePixelRatio);
  ctx.restore();
}

function drawTimeline() {
  const g = data.gpus[gpu];
  const steps = g.steps.length;
  const xs = g.steps.map((_, i) => (data.length * (i + 0.5)) / steps / 1e9);
  const axis = { stroke: () => color("--faint"), grid: { stroke: () => color("--line") }, ticks: { stroke: () => color("--line") } };
  at("timeline").replaceChildren();
  plot = new uPlot({
    width: at("timeline").clientWidth,
    height: 240,
    scales: { x: { time: false, range: [0, Math.max(data.length / 1e9, 1e-9)] }, y: { range: [0, Math.max(g.peak * 1.08, 1)] } },
    cursor: { drag: { x: true, y: false, setScale: false } },
    axes: [{ ...axis, values: (u, v) => v.map((s) => timeText(s * 1e9)) }, { ...axis, size: 90, incrs: binary, values: (u, v) => v.map(sizeText) }],
    series: [
      { label: "after the first call", value: (u, v) => (v == null ? "" : timeText(v * 1e9)) },
      { label: "live", stroke: () => color("--accent"), fill: () => color("--accent") + "33", paths: uPlot.paths.stepped({ align: 1 }), points: { show: false }, value: (u, v) => (v == null ? "" : sizeText(v)) },
    ],
    hooks: {
      draw: [markPeak],
      setSelect: [(u) => {
        if (u.select.width > 2) inRange(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
      }],
    },
  }, [xs, g.steps], at("timeline"));
  let pressed = 0;
  plot.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
  plot.over.addEventListener("click", (event) => {
    if (Math.abs(event.clientX - pressed) > 2) return;  // the end of a brush
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    atTime(plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x"));
  });
  plot.over.addEventListener("dblclick", () => {
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    atPeak();
  });
}

function draw() {
  drawTimeline();
  atPeak();
  drawTables(data, gpu, at("tables"), at("search").value);
}

function toggleTheme() {
  theme.theme = theme.theme === "dark" ? "light" : "dark";
  plot.redraw();
}

theme.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
at("title").textContent = data.title;
document.title = `xlog: ${data.title}`;
at("verdict").textContent = data.verdict;
for (const text of data.notes) {
  const note = document.createElement("p");
  note.className = "note";
  note.textContent = text;
  at("notes").append(note);
}
drawSections(data.sections, at("sections"));
if (data.gpus.length === 0) {
  at("flame-title").textContent = "No memory was allocated";
} else {
  data.gpus.forEach((g, i) => at("gpu").add(new Option(`${g.title}, peak ${sizeText(g.peak)}`, i)));
  at("gpu").addEventListener("change", () => { gpu = Number(at("gpu").value); draw(); });
  at("search").addEventListener("input", () => {
    const words = at("search").value;
    words ? flame.search(words) : flame.clear();
    drawTables(data, gpu, at("tables"), words);
  });
  at("theme").addEventListener("click", toggleTheme);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  draw();
}
