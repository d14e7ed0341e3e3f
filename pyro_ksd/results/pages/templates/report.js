// Sorting by a click on a heading, and filtering by words and by view.
"use strict";
for (const box of document.querySelectorAll("[data-table]")) {
  const table = box.querySelector("table");
  const body = table.tBodies[0];
  const words = box.querySelector("input");
  const view = box.querySelector("select");
  const count = box.querySelector(".count");
  const all = Array.from(body.rows);

  function filter() {
    const wanted = words ? words.value.trim().toLowerCase() : "";
    let shown = 0;
    for (const row of all) {
      const fits = (!wanted || row.textContent.toLowerCase().includes(wanted)) && (!view || !view.value || row.dataset.view === view.value);
      row.hidden = !fits;
      shown += fits;
    }
    if (count) count.textContent = `${shown} of ${all.length} rows`;
  }

  function value(row, column) {
    const cell = row.cells[column];
    if (!("value" in cell.dataset)) return cell.textContent.trim();
    return cell.dataset.value === "nan" ? NaN : Number(cell.dataset.value.replace("inf", "Infinity"));
  }

  function compare(one, other) {
    if (typeof one === "string") return one.localeCompare(other);
    return one - other;
  }

  function sort(heading) {
    const column = heading.cellIndex;
    const direction = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const unknown = (known) => (known === "" || Number.isNaN(known)) ? 1 : 0;
    all.sort((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return unknown(a) - unknown(b) || (unknown(a) ? 0 : sign * compare(a, b));
    });
    body.append(...all);
  }

  for (const heading of table.tHead.rows[0].cells) {
    const button = heading.querySelector("button");
    if (button) button.addEventListener("click", () => sort(heading));
  }
  if (words) words.addEventListener("input", filter);
  if (view) view.addEventListener("change", filter);
  filter();
}
