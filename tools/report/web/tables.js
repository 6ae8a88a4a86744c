// Tables that are sorted by a click on a heading, and filtered by the search.
import { sizeText } from "./model.js";

const columns = [
  ["at_peak", "at the peak", sizeText],
  ["live", "at the end", sizeText],
  ["bytes", "in all", sizeText],
  ["allocations", "allocations", (n) => n.toLocaleString("en")],
  ["temporary", "temporary", (n) => n.toLocaleString("en")],
  ["name", "", (text) => text],
];
const sorted = {};  // by title: column, descending

function fill(body, rows, title) {
  const { key, down } = sorted[title];
  const order = [...rows].sort((a, b) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0) * (down ? -1 : 1));
  body.replaceChildren(...order.map((row) => {
    const line = document.createElement("tr");
    for (const [name, , text] of columns) {
      const cell = document.createElement("td");
      cell.textContent = text(row[name]);
      line.append(cell);
    }
    return line;
  }));
  body.className = rows.length ? "" : "none";
}

function table(title, rows) {
  sorted[title] ??= { key: "at_peak", down: true };
  const element = document.createElement("table");
  const body = document.createElement("tbody");
  const head = document.createElement("tr");
  const mark = () => [...head.children].forEach((cell, i) => {
    const current = columns[i][0] === sorted[title].key;
    cell.ariaSort = current ? (sorted[title].down ? "descending" : "ascending") : "none";
  });
  for (const [key, name] of columns) {
    const cell = document.createElement("th");
    cell.textContent = name || title.toLowerCase();
    cell.addEventListener("click", () => {
      sorted[title] = { key, down: sorted[title].key === key ? !sorted[title].down : key !== "name" };
      mark();
      fill(body, rows, title);
    });
    head.append(cell);
  }
  element.createTHead().append(head);
  element.append(body);
  mark();
  fill(body, rows, title);
  return element;
}

export function drawTables(data, gpu, into, words) {
  const wanted = words.toLowerCase();
  into.replaceChildren();
  for (const [title, rows] of data.gpus[gpu].tables) {
    const kept = wanted ? rows.filter((row) => row.name.toLowerCase().includes(wanted)) : rows;
    const heading = document.createElement("h2");
    heading.textContent = title;
    into.append(heading, table(title, kept));
  }
}
