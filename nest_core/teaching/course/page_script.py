"""The script of a lesson's file: takes an answer, shows the figures, switches between states."""

from __future__ import annotations

__all__ = ["SCRIPT"]

SCRIPT = """
const at = (id) => document.getElementById(id);
const made = (tag, looks) => Object.assign(document.createElement(tag), looks);

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const whole = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return JSON.parse(await new Response(whole).text());
}

function run(lesson) {
  const setting = lesson.controls.map((control) => control.start);
  const follow = [];
  const ink = matchMedia('(prefers-color-scheme: dark)');

  function draw() {
    // Other settings may end a control's steps earlier.
    const walked = lesson.controls.findIndex((control) => control.stepped);
    while (!lesson.states[setting.join(',')] && setting[walked] > 0) setting[walked] -= 1;
    follow.forEach((say) => say());
    const [places, words] = lesson.states[setting.join(',')];
    at('words').innerHTML = lesson.words[words];
    while (at('pictures').children.length > places.length) at('pictures').lastChild.remove();
    places.forEach((number, index) => {
      const picture = lesson.kept[number];
      let figure = at('pictures').children[index];
      if (!figure) {
        figure = made('figure', {});
        figure.append(
          made('h3', {}), made('div', {className: 'nest-subtitle'}),
          made('div', {className: 'nest-legend'}),
          made('div', {className: 'plot'}), made('figcaption', {}));
        at('pictures').append(figure);
      }
      const [title, subtitle, key, plot, reading] = figure.children;
      title.textContent = picture.title;
      subtitle.textContent = picture.subtitle;
      key.innerHTML = picture.legend;
      reading.textContent = picture.reading;
      plot.setAttribute('role', 'img');
      plot.setAttribute('aria-label', picture.title);
      if (picture.marks) {
        plot.innerHTML = picture.marks.map((mark) => lesson.kept[mark]).join('');
        return;
      }
      const layout = JSON.parse(JSON.stringify(picture.layout));
      layout.paper_bgcolor = layout.plot_bgcolor = 'rgba(0, 0, 0, 0)';
      layout.font = Object.assign(
        {color: ink.matches ? '#e6e9ec' : '#1b1f24', family: 'system-ui, Arial, sans-serif'},
        layout.font);
      Plotly.react(plot, JSON.parse(JSON.stringify(picture.data)), layout,
        {displayModeBar: false, responsive: true});
    });
  }

  function reveal(verdict) {
    at('verdict').textContent = verdict;
    at('reveal').hidden = false;
    draw();
  }

  function judged(said) {
    const {right, answer, unit, tolerance, verdicts} = lesson.question;
    if (verdicts[said]) return verdicts[said];
    const close = Math.abs(said - right) <= tolerance * Math.abs(right);
    return close ? `Right. ${answer}` : `You said: ${+said} ${unit}. Computed: ${answer}`;
  }

  function range(control, index) {
    const shown = made('output', {textContent: control.names[control.start]});
    const input = made('input', {
      type: 'range', min: 0, max: control.names.length - 1, value: control.start, step: 1,
      ariaLabel: control.label});
    follow.push(() => {
      input.value = setting[index];
      shown.textContent = control.names[setting[index]];
      input.setAttribute('aria-valuetext', shown.textContent);
    });
    const move = () => { setting[index] = +input.value; draw(); };
    input.addEventListener('input', move);
    const step = (label, by) => {
      const button = made('button', {type: 'button', textContent: label});
      button.addEventListener('click', () => { input.value = +input.value + by; move(); });
      return button;
    };
    return control.stepped ? [step('Back', -1), step('Forward', 1), input, shown] : [input, shown];
  }

  function choices(control, index) {
    return control.names.map((name, value) => {
      const label = made('label', {});
      const input = made('input', {
        type: 'radio', name: `control-${index}`, checked: value === control.start});
      input.addEventListener('change', () => { setting[index] = value; draw(); });
      label.append(input, ` ${name}`);
      return label;
    });
  }

  lesson.controls.forEach((control, index) => {
    const box = made('fieldset', {title: control.help});
    const many = control.stepped || control.names.length > 6;
    box.append(made('legend', {textContent: control.label}),
      ...(many ? range : choices)(control, index));
    at('controls').append(box);
  });
  at('ask').addEventListener('change', (event) => {
    if (event.target.type === 'radio') reveal(judged(event.target.value));
  });
  at('ask').addEventListener('submit', (event) => {
    event.preventDefault();
    const said = new FormData(at('ask')).get('guess');
    if (said) reveal(judged(said));
  });
  at('show').addEventListener('click', () => reveal(`Answer: ${lesson.question.answer}`));
  ink.addEventListener('change', () => { if (!at('reveal').hidden) draw(); });
}

unpacked(at('lesson').textContent).then(run);
"""
