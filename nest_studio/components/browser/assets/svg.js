// Shows SVG text that Python made; it follows the page's theme and fonts.

export default function svg({ data, parentElement }) {
  let place = parentElement.querySelector(":scope > .nest-svg");
  if (!place) {
    place = document.createElement("div");
    place.className = "nest-svg";
    parentElement.append(place);
  }
  if (place.shown !== data.svg) {
    place.innerHTML = data.svg;
    place.shown = data.svg;
  }
}
