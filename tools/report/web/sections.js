// The sections of the report, as the text has them: closed but for what went wrong.
function cellOf(kind, text) {
  const cell = document.createElement(kind);
  cell.textContent = text;
  return cell;
}

export function drawSections(sections, into) {
  into.hidden = sections.length === 0;
  for (const section of sections) {
    const part = document.createElement("details");
    part.open = section.trouble;
    part.append(cellOf("summary", section.title));
    const table = document.createElement("table");
    for (const cells of section.rows) {
      const row = table.insertRow();
      row.append(...cells.map((text) => cellOf("td", text)));
    }
    if (section.rows.length) part.append(table);
    part.append(...section.remarks.map((text) => cellOf("p", text)));
    if (section.next) part.append(cellOf("p", `try: ${section.next}`));
    into.append(part);
  }
}
