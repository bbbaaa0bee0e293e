import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');
const ARCHITECTURE = path.join(ROOT, 'ARCHITECTURE.md');
const IMPORTS = path.join(ROOT, 'docs/internals/imports.md');

interface Module {
  /** From the repository's root, with forward slashes. */
  readonly file: string;
  /** Packages by name, files of the repository as `file`. */
  readonly imports: readonly string[];
  /** Those of them that are loaded with it: no types, and not what it imports when it is needed. */
  readonly loads: readonly string[];
  readonly readsEnvironment: boolean;
  /** TypeScript files it names outside of imports, which the compiled package would look for in vain. */
  readonly namedSources: readonly string[];
}

const modules = fs
  .readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readModule(path.posix.join('src', name.split(path.sep).join('/'))));
const engine = modules.filter(({ file }) => file.startsWith('src/engine/'));

/** What a module imports in any way: `import`, `import type`, `export from` and `import()`. */
function readModule(file: string, source = fs.readFileSync(path.join(ROOT, file), 'utf8')): Module {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const imports: string[] = [];
  const loads: string[] = [];
  const namedSources: string[] = [];
  let readsEnvironment = false;
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node) && node.getText(tree).replace(/\s/g, '') === 'process.env')
      readsEnvironment = true;
    if (ts.isImportDeclaration(node) && /\benv\b/.test(node.importClause?.getText(tree) ?? '')) readsEnvironment = true;
    if (ts.isStringLiteralLike(node)) {
      if (isImportSpecifier(node)) imports.push(resolveImport(file, node.text));
      if (isLoadedWith(node)) loads.push(resolveImport(file, node.text));
      if (!isImportSpecifier(node) && /^\.{1,2}\/.*\.ts$/.test(node.text)) namedSources.push(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { file, imports, loads, readsEnvironment, namedSources };
}

function isLoadedWith({ parent }: ts.StringLiteralLike): boolean {
  if (ts.isImportDeclaration(parent)) return parent.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword;
  return ts.isExportDeclaration(parent) && !parent.isTypeOnly;
}

function isImportSpecifier(node: ts.StringLiteralLike): boolean {
  const { parent } = node;
  if (ts.isImportDeclaration(parent) || ts.isExportDeclaration(parent)) return true;
  if (ts.isLiteralTypeNode(parent)) return ts.isImportTypeNode(parent.parent);
  return ts.isCallExpression(parent) && parent.expression.kind === ts.SyntaxKind.ImportKeyword;
}

function resolveImport(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(file), specifier);
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** `file → import` for every import that a rule forbids. */
function violations(among: readonly Module[], isForbidden: (imported: string, module: Module) => boolean): string[] {
  return among.flatMap((module) =>
    module.imports
      .filter((imported) => isForbidden(imported, module))
      .map((imported) => `${module.file} → ${imported}`),
  );
}

test('imports of every kind are seen', () => {
  const source = `
    import a from './a.ts'; import type { B } from '../b.ts'; export * from './c.ts';
    const d = await import('./d.ts'); type E = import('./e.ts').E; import '@scope/name/deep'; import 'node:fs';
    new Worker(new URL('./worker.ts', import.meta.url)); // './comment.ts' process.env`;
  expect(readModule('src/x/y.ts', source)).toEqual({
    file: 'src/x/y.ts',
    imports: ['src/x/a.ts', 'src/b.ts', 'src/x/c.ts', 'src/x/d.ts', 'src/x/e.ts', '@scope/name', 'node:fs'],
    loads: ['src/x/a.ts', 'src/x/c.ts', '@scope/name', 'node:fs'],
    readsEnvironment: false,
    namedSources: ['./worker.ts'],
  });
  expect(readModule('src/x.ts', 'f(process.env)').readsEnvironment).toBe(true);
  expect(readModule('src/x.ts', "import { env } from 'node:process'").readsEnvironment).toBe(true);
  expect(engine.length).toBeGreaterThan(10);
});

describe('rooms', () => {
  test('no file imports itself by way of others, types included', () => {
    const imports = new Map(modules.map(({ file, imports }) => [file, new Set(imports)]));
    expect(findCircle(imports)).toEqual([]);
  });

  test('no folder imports itself by way of others', () => {
    expect(findCircle(roomsOf(modules))).toEqual([]);
  });

  test.each([
    ['ARCHITECTURE.md', ARCHITECTURE, drawStoreys],
    ['docs/internals/imports.md', IMPORTS, drawRooms],
  ])('%s draws the rooms as they are', async (_name, file, draw) => {
    const picture = draw(roomsOf(modules));
    const text = fs.readFileSync(file, 'utf8');
    const drawn = text.replace(/(?<=<!-- rooms -->\s+```text\n).*?(?=```)/s, picture);
    expect(drawn).toContain(picture);
    await expect(drawn).toMatchFileSnapshot(file); // `npx vitest run test/architecture.test.ts -u` draws it.
  });

  test('circles are found, and rooms are drawn from the top', () => {
    const graph = (edges: Record<string, string[]>) =>
      new Map(Object.entries(edges).map(([from, to]) => [from, new Set(to)]));
    expect(findCircle(graph({ a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }))).toEqual([]);
    expect(findCircle(graph({ a: ['b'], b: ['c', 'd'], c: [], d: ['b'] }))).toEqual(['b', 'd', 'b']);
    const module = (file: string, ...imports: string[]): Module => ({
      file,
      imports,
      loads: [],
      readsEnvironment: false,
      namedSources: [],
    });
    const rooms = roomsOf([
      module('src/engine/types.ts'),
      module('src/engine/store/jobs.ts', 'src/engine/types.ts', 'src/engine/store/open.ts', 'node:fs'),
      module('src/api/routes/add.ts', 'src/engine/store/jobs.ts', 'src/api/app.ts'),
      module('src/main.ts', 'src/api/app.ts'),
    ]);
    expect(drawRooms(rooms)).toBe(`src/main.ts           src/api
src/api               store
store                 –

below all             types.ts
`);
    expect(drawStoreys(rooms)).toBe('2: src/main.ts | 1: src/api | 0: store\n');
  });
});

type Imports = ReadonlyMap<string, ReadonlySet<string>>;

/** The way from the first file or room of a circle back to it; empty where there is none. */
function findCircle(imports: Imports): string[] {
  const cleared = new Set<string>();
  const walk = (at: string, way: readonly string[]): string[] => {
    if (way.includes(at)) return [...way.slice(way.indexOf(at)), at];
    if (cleared.has(at)) return [];
    for (const next of imports.get(at) ?? []) {
      const circle = walk(next, [...way, at]);
      if (circle.length > 0) return circle;
    }
    cleared.add(at);
    return [];
  };
  for (const start of imports.keys()) {
    const circle = walk(start, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

/**
 * What each room imports. A room is a folder; src/api, src/cli, src/client, src/console and src/workers are one each.
 * A file of src or src/engine is a room of its own, together with the folder of the same name (types.ts and types/),
 * which nobody else imports.
 */
function roomsOf(among: readonly Module[]): Imports {
  const rooms = new Map<string, Set<string>>();
  for (const { file, imports } of among) {
    const room = roomOf(file);
    const others = rooms.get(room) ?? new Set<string>();
    rooms.set(room, others);
    for (const name of imports) if (name.startsWith('src/') && roomOf(name) !== room) others.add(roomOf(name));
  }
  return rooms;
}

function roomOf(file: string): string {
  const [thin] = /^src\/(api|cli|client|console|workers)(?=\/)/.exec(file) ?? [];
  const folder = path.posix.dirname(file);
  const door = path.posix.dirname(folder) === 'src/engine' && fs.existsSync(path.join(ROOT, `${folder}.ts`));
  const room = thin ?? (folder === 'src' || folder === 'src/engine' ? file : door ? `${folder}.ts` : folder);
  return room.replace(/^src\/engine\//, '');
}

/** How rooms stand upon each other. */
interface House {
  readonly importsOf: (room: string) => string[];
  /** Number of rooms on the longest way down. */
  readonly height: (room: string) => number;
  /** Whether everybody may import it: a file of src/engine that imports nothing but other such files. */
  readonly isBelowAll: (room: string) => boolean;
  readonly inOrder: (names: Iterable<string>) => string[];
}

function houseOf(rooms: Imports): House {
  const importsOf = (room: string) => [...(rooms.get(room) ?? [])];
  const isBelowAll = (room: string): boolean => /^\w[\w-]*\.ts$/.test(room) && importsOf(room).every(isBelowAll);
  const heights = new Map<string, number>();
  const height = (room: string): number => {
    const known = heights.get(room);
    if (known !== undefined) return known;
    const found = Math.max(0, ...importsOf(room).map((other) => (isBelowAll(other) ? 0 : height(other) + 1)));
    heights.set(room, found);
    return found;
  };
  const inOrder = (names: Iterable<string>) => [...names].sort((a, b) => height(b) - height(a) || (a < b ? -1 : 1));
  return { importsOf, height, isBelowAll, inOrder };
}

/** The storeys from the top, as many on a line as fit: rooms of one import none but rooms of those below. */
function drawStoreys(rooms: Imports): string {
  const { height, isBelowAll, inOrder } = houseOf(rooms);
  const drawn = inOrder(rooms.keys()).filter((room) => !isBelowAll(room));
  const storeys = [...Map.groupBy(drawn, height)].map(([storey, names]) => `${storey}: ${names.join(', ')}`);
  const lines: string[] = [];
  for (const storey of storeys) {
    const longer = `${lines.at(-1)} | ${storey}`;
    if (lines.length > 0 && longer.length <= 118) lines[lines.length - 1] = longer;
    else lines.push(storey);
  }
  return `${lines.join('\n')}\n`;
}

/**
 * A line for each room with what it imports, each above all that it imports. What everybody may import is named once,
 * below.
 */
function drawRooms(rooms: Imports): string {
  const { importsOf, isBelowAll, inOrder } = houseOf(rooms);
  const drawn = inOrder(rooms.keys()).filter((room) => !isBelowAll(room));
  const lines = drawn.map((room) =>
    line(
      room,
      inOrder(importsOf(room)).filter((name) => !isBelowAll(name)),
    ),
  );
  return `${lines.join('')}\n${line('below all', [...rooms.keys()].filter(isBelowAll).sort())}`;
}

/** A name and, beside it, the names that belong to it, over as many lines as they need. */
function line(name: string, names: readonly string[]): string {
  return wrap(names.length === 0 ? '–' : names.join(', '), 98)
    .map((part, at) => `${(at === 0 ? name : '').padEnd(21)} ${part}\n`)
    .join('');
}

function wrap(text: string, width: number): string[] {
  return text.match(new RegExp(`.{1,${width}}(?= |$)`, 'g'))!.map((part) => part.trim());
}

describe('layers', () => {
  test('the engine imports neither the API, the workers nor the command line', () => {
    expect(violations(engine, (name) => name.startsWith('src/') && !name.startsWith('src/engine/'))).toEqual([]);
  });

  test('everybody else imports the engine by its front door, and by the doors made for them', () => {
    const doors: Record<string, RegExp> = {
      'src/workers': /^src\/engine\/((adapters\/)?index|for-workers|for-queues)\.ts$/,
      'src/cli': /^src\/engine\/((adapters\/)?index|for-admin|for-options)\.ts$/,
    };
    const frontDoor = /^src\/engine\/(adapters\/)?index\.ts$/;
    const outside = modules.filter(({ file }) => !file.startsWith('src/engine/'));
    const mayImport = (name: string, file: string) => (doors[roomOf(file)] ?? frontDoor).test(name);
    const passing = (name: string) => name.startsWith('src/engine/');
    expect(violations(outside, (name, { file }) => passing(name) && !mayImport(name, file))).toEqual([]);
    expect(violations(outside, passing).length).toBeGreaterThan(50);
    const isDoor = (name: string) => /^src\/engine\/((adapters\/)?index|for-\w+)\.ts$/.test(name);
    expect(violations(engine, isDoor)).toEqual([]);
  });

  test('the front door loads nothing that an importer may not need: neither SQLite, nor metrics, nor an adapter', () => {
    const byFile = new Map(modules.map((module) => [module.file, module]));
    const loaded = new Set(['src/engine/index.ts']);
    for (const file of loaded) for (const name of byFile.get(file)?.loads ?? []) loaded.add(name);
    const packages = [...loaded].filter((name) => !name.startsWith('src/') && !name.startsWith('node:'));
    expect(packages).toEqual(['zod']);
    expect([...loaded].filter((name) => name.startsWith('src/engine/adapters/'))).toEqual([]);
  });

  test('the folder behind a file of its name is imported by that file alone', () => {
    const isBehind = (name: string) => name.startsWith('src/engine/') && !name.startsWith(`src/engine/${roomOf(name)}`);
    const isHidden = (name: string) => isBehind(name) && roomOf(name).endsWith('.ts');
    expect(violations(modules, (name, { file }) => isHidden(name) && roomOf(name) !== roomOf(file))).toEqual([]);
  });

  test('the client imports nothing but itself, so that it runs in a browser', () => {
    const client = modules.filter(({ file }) => file.startsWith('src/client/'));
    expect(client.length).toBeGreaterThan(5);
    expect(violations(client, (name) => !name.startsWith('src/client/'))).toEqual([]);
  });

  test('the API and the workers never import each other', () => {
    const inFolder = (folder: string) => modules.filter(({ file }) => file.startsWith(folder));
    expect(violations(inFolder('src/api/'), (name) => name.startsWith('src/workers/'))).toEqual([]);
    expect(violations(inFolder('src/workers/'), (name) => name.startsWith('src/api/'))).toEqual([]);
  });

  test('inside the engine only open-engine.ts, parts, tenant-file and the door of commands name an adapter', () => {
    const mayName = (file: string) =>
      /^src\/engine\/(open-engine(\/[\w-]+)?|for-admin|(parts|tenant-file)\/[\w-]+)\.ts$/.test(file) ||
      file.startsWith('src/engine/adapters/');
    expect(violations(engine, (name, { file }) => name.startsWith('src/engine/adapters/') && !mayName(file))).toEqual(
      [],
    );
  });

  test('the core of the engine knows no web framework, no queue and no SDK', () => {
    const core = engine.filter(({ file }) => !file.startsWith('src/engine/adapters/'));
    const foreign = new Set([
      'express',
      'cors',
      'bullmq',
      'ioredis',
      'openai',
      'commander',
      'aws4fetch',
      'onnxruntime-web',
      '@bull-board/api',
      '@opentelemetry/api',
      '@opentelemetry/sdk-trace-node',
    ]);
    expect(violations(core, (name) => foreign.has(name))).toEqual([]);
  });

  test('large packages that few need are loaded when they are needed, since each thread would hold them', () => {
    const loaded = modules.flatMap(({ file, loads }) => loads.map((name) => ({ file, name })));
    expect(loaded.filter(({ name }) => ['undici', 'openai', 'onnxruntime-web'].includes(name))).toEqual([]);
    expect(loaded).toContainEqual({ file: 'src/engine/config/settings.ts', name: 'zod' });
  });

  test('only entry points read the environment, and the points where a test makes a process fail', () => {
    const mayRead = (file: string) =>
      /^src\/(\w+\/)?main\.ts$/.test(file) || file.startsWith('src/cli/') || file === 'src/engine/failpoint.ts';
    expect(modules.filter(({ file, readsEnvironment }) => readsEnvironment && !mayRead(file))).toEqual([]);
  });

  test('every package that is imported is a dependency', () => {
    const { dependencies, peerDependencies } = JSON.parse(
      fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'peerDependencies', Record<string, string>>;
    // Peers are optional: what needs one says so and how to get it.
    const known = { ...dependencies, ...peerDependencies };
    const isKnown = (name: string) => name.startsWith('src/') || name.startsWith('node:') || name in known;
    // What the console imports is bundled into its files when they are built.
    const installed = modules.filter(({ file }) => !file.startsWith('src/console/'));
    expect(violations(installed, (name) => !isKnown(name))).toEqual([]);
  });

  test('the console, which runs in a browser, takes types from the API and nothing else of the service', () => {
    const ofBrowser = modules.filter(({ file }) => file.startsWith('src/console/') && !file.endsWith('vite.config.ts'));
    expect(ofBrowser.length).toBeGreaterThan(20);
    const isOwn = (name: string) => name.startsWith('src/console/') || !/^(src\/|node:)/.test(name);
    const isType = (name: string, { file }: Module) =>
      file === 'src/console/types.ts' && /^src\/api\/schemas\//.test(name);
    expect(violations(ofBrowser, (name, module) => !isOwn(name) && !isType(name, module))).toEqual([]);
    expect(ofBrowser.find(({ file }) => file === 'src/console/types.ts')?.loads).toEqual([]);
  });

  // Instead: `./thread${path.extname(import.meta.filename)}`, which is .js once compiled.
  test('no source file is named as a string, since a published package has compiled ones', () => {
    expect(modules.filter(({ namedSources }) => namedSources.length > 0)).toEqual([]);
  });
});

describe.skipIf(!fs.existsSync(path.join(ROOT, '.git')))('the repository', () => {
  test('no file names a path of the machine it was written on', () => {
    const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT });
    const files = list
      .toString()
      .split('\0')
      .filter((name) => name !== '' && fs.existsSync(path.join(ROOT, name)));
    expect(files).toContain('package.json');
    const named = files.flatMap((name) => {
      const found = findMachinePath(fs.readFileSync(path.join(ROOT, name), 'latin1'));
      return found === undefined ? [] : [`${name}: ${found}`];
    });
    expect(named).toEqual([]);
  });

  test.each(['home', 'Users'])('a folder of a person under %s is found', (folder) => {
    expect(findMachinePath(`see ${['', folder, 'somebody', 'notes'].join('/')}`)).toBeDefined();
    expect(findMachinePath('see https://example.org/home/page and /usr/bin/node')).toBeUndefined();
  });
});

/** A person's folder, the folder of this checkout, or the home of whoever runs this. */
function findMachinePath(contents: string): string | undefined {
  const own = [ROOT, os.homedir()].filter((folder) => folder.split(path.sep).filter(Boolean).length > 1);
  const person = /(?<![\w.-])(?:[/](?:home|Users)[/](?!node[/])[\w.-]+[/]|[/]root[/]|[A-Z]:\\+Users\\+\w)/;
  return own.find((folder) => contents.includes(folder)) ?? person.exec(contents)?.[0];
}
