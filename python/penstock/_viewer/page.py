"""The page itself."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>penstock view</title>
<style>
  body { font: 14px system-ui, sans-serif; margin: 16px; color: #222; background: #fff; }
  header { display: flex; gap: 12px; align-items: center; flex-wrap: wrap; margin-bottom: 12px; }
  main { display: grid; grid-template-columns: repeat(auto-fill, minmax(236px, 1fr)); gap: 12px; }
  figure { margin: 0; padding: 6px; border: 1px solid #ddd; border-radius: 6px; }
  img { max-width: 100%; display: block; margin: 0 auto; min-height: 40px; }
  figcaption { overflow-wrap: anywhere; font-size: 12px; color: #555; margin-top: 4px; }
  .error { color: #b00; }
</style>
</head>
<body>
<header>
  <strong>penstock view</strong>
  <label>Augmentation <select id="augmentation"><option value="">none</option></select></label>
  <button id="again">Draw again</button>
  <button id="previous">Previous</button>
  <span id="place"></span>
  <button id="next">Next</button>
</header>
<main id="images"></main>
<script>
const element = (id) => document.getElementById(id);
let start = 0, seed = 1, listing = null;

async function load() {
  listing = await (await fetch(`list?start=${start}`)).json();
  const select = element("augmentation");
  if (select.options.length === 1) {
    for (const name of listing.augmentations) select.add(new Option(name, name));
  }
  draw();
}

function draw() {
  const chosen = element("augmentation").value;
  const last = start + listing.images.length;
  element("place").textContent = `${start + 1} to ${last} of ${listing.total}`;
  element("previous").disabled = start === 0;
  element("next").disabled = last >= listing.total;
  element("again").disabled = chosen === "";
  element("images").replaceChildren(...listing.images.map((image) => {
    const figure = document.createElement("figure");
    const picture = document.createElement("img");
    const caption = document.createElement("figcaption");
    const query = new URLSearchParams({ number: image.number, augmentation: chosen, seed });
    picture.loading = "lazy";
    picture.alt = image.name;
    picture.src = `image?${query}`;
    picture.onerror = async () => {
      caption.className = "error";
      caption.textContent = `${image.name}: ${await (await fetch(picture.src)).text()}`;
      picture.remove();
    };
    caption.textContent = image.name;
    figure.append(picture, caption);
    return figure;
  }));
  document.body.dataset.ready = "yes";
}

element("augmentation").onchange = draw;
element("again").onclick = () => { seed += 1; draw(); };
element("previous").onclick = () => { start = Math.max(0, start - listing.per_page); load(); };
element("next").onclick = () => { start += listing.per_page; load(); };
load();
</script>
</body>
</html>
"""
