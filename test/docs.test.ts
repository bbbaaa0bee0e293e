import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { derivedFiles } from '../reference/derived-files.ts';
import { ROUTES } from '../src/api/routes.ts';
import { LIMITS } from '../src/api/schemas/value-limits.ts';
import { HTTP_STATUS } from '../src/api/schemas/problem.ts';
import { settingsSchema } from '../src/engine/config.ts';
import { createMetrics } from '../src/engine/metrics.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const DOCUMENTS = [
  'README.md',
  'ARCHITECTURE.md',
  ...fs
    .readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.split(path.sep).join('/')}`),
];
const read = (document: string) => fs.readFileSync(path.join(ROOT, document), 'utf8');
const api = read('docs/guides/http-api.md');

test('what follows from the description of the API is as `npm run reference` writes it', async () => {
  const files = await derivedFiles();
  expect([...files.keys()]).toContain('docs/reference/http-api.md');
  for (const [name, text] of files) expect(read(name), name).toBe(text);
});

describe('docs/reference/http-api.md', () => {
  test('has a section for each route, which says who may call it', () => {
    const reference = read('docs/reference/http-api.md');
    for (const { method, path: route, summary, access } of ROUTES) {
      const heading = `### \`${method.toUpperCase()} ${route}\``;
      expect(reference).toContain(`${heading}\n\n${summary}. Access: \`${access}\`.\n`);
    }
  });
});

describe('docs/guides/http-api.md', () => {
  test('every request it shows goes to a route', () => {
    const requests = [...api.matchAll(/(?<=^|`)(GET|POST|PUT|PATCH|DELETE) (\/[\w/:.-]*)/gm)];
    expect(requests.length).toBeGreaterThan(20);
    const unknown = requests.filter(([, method, target]) => !ROUTES.some((route) => answers(route, method!, target!)));
    expect(unknown.map(([request]) => request)).toEqual([]);
  });

  test('every error code stands in its table with its status', () => {
    const rows = sectionUnder('Errors').matchAll(/^\| `(\w+)` +\| (\d{3}) /gm);
    expect(Object.fromEntries([...rows].map(([, code, status]) => [code, Number(status)]))).toEqual(HTTP_STATUS);
  });

  test.each(Object.entries(LIMITS))('names the limit %s', (_name, limit) => {
    const shown = limit % 1024 === 0 && limit >= 16 * 1024 ? `${limit / 1024} KiB` : String(limit);
    expect(api).toMatch(new RegExp(`(?<!\\d)${shown}(?!\\d)`));
  });
});

test('docs/reference/metrics.md lists every metric with its type, its labels and what the code says that it means', () => {
  const metrics = createMetrics();
  metrics.watchProcess('0.0.0');
  const real = metrics.registry.getMetricsAsArray() as unknown as readonly RegisteredMetric[];
  const listed = read('docs/reference/metrics.md')
    .replaceAll(/\n {2}(?=\S)/g, ' ')
    .split('\n');
  const entries = listed.filter((line) => /^- `[a-z0-9_]+` \(/.test(line));
  expect(entries.sort()).toEqual(real.map(entryOf).sort());
});

interface RegisteredMetric {
  readonly name: string;
  readonly type: string;
  readonly labelNames: readonly string[];
  readonly help: string;
}

function entryOf({ name, type, labelNames, help }: RegisteredMetric): string {
  const labels = labelNames.map((label) => `\`${label}\``).join(', ');
  return `- \`${name}\` (${[type, labels].filter(Boolean).join('; ')}): ${help}`;
}

test.each([...DOCUMENTS, 'CONTRIBUTING.md'])('%s names only files of the project that exist', (document) => {
  const named = [...read(document).matchAll(/`((?:[\w-]+\/)+[\w-]+\.(?:ts|md|yml|sql))`/g)].map(([, name]) => name!);
  const places = ['.', 'src', 'src/engine', 'src/engine/adapters', path.dirname(document)];
  const missing = named.filter((name) => !places.some((place) => fs.existsSync(path.join(ROOT, place, name))));
  expect(missing.filter((name) => name !== 'src/user.ts')).toEqual([]);
});

test.each(DOCUMENTS)('%s names only metrics that exist', (document) => {
  const real = new Set(
    createMetrics()
      .registry.getMetricsAsArray()
      .map(({ name }) => name),
  );
  const named = [...read(document).matchAll(/`(cairn_\w+)[`{]/g)].map(([, name]) => name!);
  expect(named.filter((name) => !real.has(name.replace(/_(?:bucket|sum|count)$/, '')))).toEqual([]);
});

describe.each(DOCUMENTS)('%s', (document) => {
  test('names only settings that exist', () => {
    const named = [...read(document).matchAll(/\bOM_[A-Z_]*[A-Z]\b/g)].map(([name]) => name);
    expect(named.filter((name) => !(name in settingsSchema.shape))).toEqual([]);
  });

  test('its relative links lead to a file and a heading', () => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
    const broken = links.filter(([, file, heading]) => {
      const target = file === '' ? document : path.posix.join(path.posix.dirname(document), file!);
      if (!fs.existsSync(path.join(ROOT, target))) return true;
      return heading !== undefined && !anchorsOf(read(target)).includes(heading);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });
});

test('docker-compose.yml sets every setting or passes it on', () => {
  const services = read('docker-compose.yml');
  const missing = Object.keys(settingsSchema.shape).filter((name) => !new RegExp(`^ +${name}:`, 'm').test(services));
  expect(missing).toEqual([]);
});

test('a heading becomes the anchor that GitHub gives it', () => {
  expect(anchorsOf('# Keys and roles\n\n### `GET /memory/:id`\n')).toEqual(['keys-and-roles', 'get-memoryid']);
});

/** The text down to the next heading of the same depth or above. */
function sectionUnder(heading: string): string {
  const start = api.indexOf(`\n## ${heading}\n`) + 1;
  expect(start, heading).toBeGreaterThan(0);
  const body = api.slice(api.indexOf('\n', start) + 1);
  const end = body.search(/^#{1,2} /m);
  return end === -1 ? body : body.slice(0, end);
}

/** `:id` in the document stands for itself, an id in an example for `:id`. */
function answers(route: (typeof ROUTES)[number], method: string, target: string): boolean {
  const [wanted, given] = [route.path.split('/'), target.split('/')];
  return (
    route.method.toUpperCase() === method &&
    wanted.length === given.length &&
    wanted.every((part, index) => part === given[index] || (part.startsWith(':') && given[index] !== ''))
  );
}

/** As GitHub makes them: lower case, punctuation left out, hyphens for spaces. */
function anchorsOf(markdown: string): string[] {
  return [...markdown.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}
