// What the page knows of its data, apart from drawing.

export function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  // Cut, not rounded, as the command does.
  return unit === 0 ? `${Math.round(value)} B` : `${(Math.floor(value * 100) / 100).toFixed(2)} ${units[unit]}`;
}

export function timeText(ns) {
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
    if (ns >= scale) return `${(ns / scale).toFixed(1)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

// The stacks of a snapshot as a tree, outermost frame first. Places are numbers in data.places; -1 stands for all that are not
// told one by one.
export function flameTree(data, snapshot) {
  const root = { name: "all", value: 0, children: [], index: new Map() };
  for (const [place, bytes] of snapshot.places) {
    const frames = place < 0 ? ["(smaller ones)"] : data.places[place].frames.map((f) => data.frames[f]);
    let node = root;
    node.value += bytes;
    for (const name of frames) {
      let child = node.index.get(name);
      if (!child) {
        child = { name, value: 0, children: [], index: new Map() };
        node.index.set(name, child);
        node.children.push(child);
      }
      child.value += bytes;
      node = child;
    }
  }
  const strip = (node) => ({ name: node.name, value: node.value, children: node.children.map(strip) });
  return strip(root);
}

export function nearest(snapshots, time) {
  return snapshots.reduce((best, s) => (!best || Math.abs(s.time - time) < Math.abs(best.time - time) ? s : best), null);
}

// Of the moments that are told between two times the highest one; the peak is one. Where none is told between, the nearest.
export function highestIn(gpu, from, to) {
  const peak = { ...gpu.at_peak, time: gpu.peak_time };
  const inside = [...gpu.snapshots, peak].filter((s) => s.time >= from && s.time <= to);
  return inside.reduce((best, s) => (!best || s.live > best.live ? s : best), null) ?? nearest(gpu.snapshots, (from + to) / 2);
}
