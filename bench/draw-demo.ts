/**
 * Draws the picture of the README, docs/images/demo.svg: `npm run measure -- draw-demo`. It runs `cairn demo` and draws
 * what that printed up to its second question, colours included.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const ROOT = path.join(import.meta.dirname, '..');
const COLUMNS = 82;
const LETTER_WIDTH = 7.8;
const LINE_HEIGHT = 18;
const MARGIN = 16;
const INK = '#d8dee9';
/** Attributes of a text by the number of its ANSI escape (select graphic rendition). */
const STYLES: Readonly<Record<string, string>> = {
  1: 'font-weight="700" fill="#ffffff"',
  2: 'fill="#8b95a7"',
  31: 'fill="#f08080"',
  32: 'fill="#9ece6a"',
  33: 'fill="#e0af68"',
  36: 'fill="#7dcfff"',
};
const ESCAPE = '\u001b[';

function main(): void {
  const output = execFileSync(process.execPath, [path.join(ROOT, 'bin/cairn.cjs'), 'demo'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, FORCE_COLOR: '1' },
  });
  const lines = output.split('\n');
  const questions = lines.flatMap((line, at) => (line.includes('▸') ? [at] : []));
  fs.writeFileSync(
    path.join(ROOT, 'docs/images/demo.svg'),
    draw(['$ npx cairn demo', ...lines.slice(0, questions[1])]),
  );
}

function draw(lines: readonly string[]): string {
  const [width, height] = [COLUMNS * LETTER_WIDTH + 2 * MARGIN, lines.length * LINE_HEIGHT + 2 * MARGIN];
  const texts = lines.map(
    (line, at) => `<text x="${MARGIN}" y="${MARGIN + (at + 0.75) * LINE_HEIGHT}">${styled(line)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-size="13" xml:space="preserve"
  font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" fill="${INK}">
<rect width="${width}" height="${height}" rx="8" fill="#1b1f27"/>
${texts.join('\n')}
</svg>
`;
}

/** A line with each run of one style as a `tspan`. */
function styled(line: string): string {
  let style: string | undefined;
  return line
    .split(ESCAPE)
    .map((part, at) => {
      const end = at === 0 ? -1 : part.indexOf('m');
      if (end >= 0) style = STYLES[part.slice(0, end)];
      const text = escapeXml(part.slice(end + 1));
      return style === undefined || text === '' ? text : `<tspan ${style}>${text}</tspan>`;
    })
    .join('');
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

main();
