import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test } from 'vitest';
import { SPARE_CHILDREN, LARGE_MB } from '../../../src/engine/adapters/parser-children.ts';
import { createParserPool, type ParserPoolOptions } from '../../../src/engine/adapters/parser-pool.ts';
import type { DocumentParser } from '../../../src/engine/ports.ts';
import { askParser, askWith, PARSER_DOORS, requestOf, STUB_PARSER } from '../../support/ask-parser.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const PARENT = path.resolve(import.meta.dirname, '../../support/parser-parent.ts');
const READER = path.resolve(import.meta.dirname, '../../support/read-files.ts');
const ROOT = path.resolve(import.meta.dirname, '../../..');

const pools: DocumentParser[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.close()));
});

function openPool(options: Partial<ParserPoolOptions> = {}): DocumentParser {
  const pool = createParserPool({ size: 1, timeoutMs: 30_000, heapMb: 128, entry: STUB_PARSER, ...options });
  pools.push(pool);
  return pool;
}

function isAlive(pid: unknown): boolean {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
}

async function awaitEnd(pid: unknown): Promise<void> {
  while (isAlive(pid)) await pause(10);
}

/** Dead, but the thread that would have taken notice is gone too. */
function isZombie(pid: unknown): boolean {
  try {
    return fs.readFileSync(`/proc/${Number(pid)}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

describe('a process is kept', () => {
  test('for the next document', async () => {
    const pool = openPool();
    expect(await askParser(pool, ['calls'])).toBe(1);
    expect(await askParser(pool, ['calls'])).toBe(2);
  });

  test('after a document that is at fault itself', async () => {
    const pool = openPool();
    const pid = await askParser(pool, ['pid']);
    await expect(askParser(pool, ['refuse'])).rejects.toMatchObject({
      name: 'DocumentError',
      code: 'encrypted_document',
      message: 'The document is encrypted',
    });
    await expect(askParser(pool, ['throw', 'canary'])).rejects.toMatchObject({ code: 'corrupt_document' });
    await expect(askParser(pool, ['recurse'])).rejects.toMatchObject({ code: 'document_too_complex' });
    expect(await askParser(pool, ['reject unseen'])).toBe('read');
    expect(await askParser(pool, ['print much'])).toBe('printed');
    expect(await askParser(pool, ['pid'])).toBe(pid);
  });

  test('for 200 documents', async () => {
    const pool = openPool();
    const pids = new Map<unknown, number>();
    for (let document = 0; document < 201; document++) {
      const pid = await askParser(pool, ['pid']);
      pids.set(pid, (pids.get(pid) ?? 0) + 1);
    }
    expect([...pids.values()]).toEqual([200, 1]);
  });

  test('until it has waited long enough', async () => {
    const pool = openPool({ idleMs: 50 });
    const pid = await askParser(pool, ['pid']);
    await awaitEnd(pid);
    expect(await askParser(pool, ['calls'])).toBe(1);
  });
});

describe('a process serves one tenant', () => {
  test('and tenants that take turns keep theirs; that of the one who was away longest is replaced', async () => {
    const pool = openPool();
    const pidOf = async (tenant: string) => Number(await askParser(pool, ['pid'], { tenant }));
    const kept = 1 + SPARE_CHILDREN;
    const names = Array.from({ length: kept }, (_, n) => `tenant ${n}`);
    const pids = [];
    for (const tenant of names) pids.push(await pidOf(tenant));
    expect(new Set(pids).size).toBe(kept);
    for (const [n, tenant] of names.entries()) expect(await pidOf(tenant)).toBe(pids[n]);

    pids.push(await pidOf('one more'));
    expect(new Set(pids).size).toBe(kept + 1);
    await awaitEnd(pids[0]);
    for (const [n, tenant] of names.entries()) if (n > 0) expect(await pidOf(tenant)).toBe(pids[n]);
    expect(pids).not.toContain(await pidOf(names[0]!));
  });

  test('and those that hold much memory are kept for no more tenants than may read at once', async () => {
    const pool = openPool({ heapMb: 512 });
    const pidOf = async (tenant: string) => Number(await askParser(pool, ['pid'], { tenant }));
    const pids = [];
    for (const tenant of ['a', 'b']) {
      pids.push(await pidOf(tenant));
      expect(await askParser(pool, ['hold', LARGE_MB], { tenant })).toBe('held');
    }
    await awaitEnd(pids[0]);
    expect(await pidOf('b')).toBe(pids[1]);
    await pidOf('c');
    await awaitEnd(pids[1]);
  });

  test('and what a document leaves behind does not meet that of another', async () => {
    const pool = openPool({ size: 2 });
    expect(await askParser(pool, ['leave behind'], { tenant: 'a' })).toBe(false);
    expect(await askParser(pool, ['leave behind'], { tenant: 'a' })).toBe(true);
    expect(await askParser(pool, ['leave behind'], { tenant: 'b' })).toBe(false);
  });
});

describe('a process is replaced', () => {
  test.each([
    ['loop', 'document_too_complex'],
    ['sleep', 'document_too_complex'],
    ['fill the heap', 'document_too_complex'],
    ['fill buffers', 'document_too_complex'],
    ['fill buffers gradually', 'document_too_complex'],
    ['abort', 'document_too_complex'],
    ['exit', 'parser_crashed'],
    ['flood frames', 'parser_crashed'],
    ['flood bytes', 'document_too_large'],
    ['claim a large frame', 'document_too_large'],
    ['reply nonsense', 'parser_crashed'],
    ['throw later', 'parser_crashed'],
  ])('after: %s → %s', async (deed, code) => {
    const pool = openPool({ timeoutMs: deed === 'loop' || deed === 'sleep' ? 1_000 : 30_000 });
    const pid = await askParser(pool, ['pid']);
    await expect(askParser(pool, [deed])).rejects.toMatchObject({ name: 'DocumentError', code });
    expect(await askParser(pool, ['calls'])).toBe(1);
    await awaitEnd(pid);
  });

  test('when it was killed in the middle of a document', async () => {
    const pool = openPool();
    const pid = Number(await askParser(pool, ['pid']));
    const reading = askParser(pool, ['pages', 1_000_000], { onPage: () => process.kill(pid, 'SIGKILL') });
    await expect(reading).rejects.toMatchObject({ name: 'DocumentError', code: 'parser_crashed' });
    expect(await askParser(pool, ['calls'])).toBe(1);
  });

  test('when it holds much memory after a document', async () => {
    const pool = openPool();
    expect(await askParser(pool, ['keep buffers'])).not.toBe(await askParser(pool, ['pid']));
  });

  test('when it died between two documents', async () => {
    const pool = openPool();
    const pid = Number(await askParser(pool, ['pid']));
    process.kill(pid, 'SIGKILL');
    await awaitEnd(pid);
    expect(await askParser(pool, ['calls'])).toBe(1);
  });
});

test('a large file and a large text go through', async () => {
  const long = '汉字🙂 '.repeat(1_000_000);
  expect(await askParser(openPool({ heapMb: 512 }), ['echo', long])).toBe(long);
});

test.each(['throw', 'throw later'])('what a parser throws is not passed on: %s', async (deed) => {
  const error = await askParser(openPool(), [deed, 'canary']).catch((error: unknown) => error);
  expect(error).toMatchObject({ name: 'DocumentError', code: 'corrupt_document' });
  expect(String((error as Error).stack)).not.toContain('canary');
  expect((error as Error).cause).toBeUndefined();
});

test('no document is blamed for what an earlier one may have left behind', async () => {
  const pool = openPool();
  expect(await askParser(pool, ['leave a bomb'])).toBe('read');
  await expect(askParser(pool, ['sleep'])).rejects.toMatchObject({ code: 'parser_crashed' });
});

test('an answer that came in time counts, even if this process was too busy to take it', async () => {
  const pool = openPool({ timeoutMs: 1_000 });
  await askParser(pool, ['calls']);
  const reading = askParser(pool, ['calls']);
  await pause(0);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
  expect(await reading).toBe(2);
});

test("what a caller's own progress throws is its own", async () => {
  const pool = openPool();
  const mine = new Error('mine');
  const reading = askParser(pool, ['pages', 1_000_000], {
    onPage: () => {
      throw mine;
    },
  });
  await expect(reading).rejects.toBe(mine);
});

test('signals to the whole group end no process', async () => {
  const pool = openPool();
  const pid = Number(await askParser(pool, ['pid']));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(pid, signal);
  expect(await askParser(pool, ['pid'])).toBe(pid);
});

describe('documents', () => {
  test('are read at once by as many processes as there may be', async () => {
    const pool = openPool({ size: 2 });
    const stop = new AbortController();
    const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const readings = started.map(({ resolve }) =>
      askParser(pool, ['pages', 1_000_000], { signal: stop.signal, onPage: () => resolve() }),
    );
    await Promise.all(started.map(({ promise }) => promise));
    stop.abort();
    for (const reading of await Promise.allSettled(readings)) {
      expect(reading).toMatchObject({ status: 'rejected', reason: { name: 'EngineError', code: 'unavailable' } });
    }
  });

  test('beyond that wait, and an aborted one makes room', async () => {
    const pool = openPool();
    const stop = new AbortController();
    const first = askParser(pool, ['sleep'], { signal: stop.signal });
    const dropped = new AbortController();
    const second = askParser(pool, ['calls'], { signal: dropped.signal });
    const third = askParser(pool, ['calls']);
    dropped.abort();
    stop.abort();
    await expect(first).rejects.toMatchObject({ code: 'unavailable' });
    await expect(second).rejects.toMatchObject({ code: 'unavailable' });
    expect(await third).toBe(1);
  });
});

test('a tenant of which nothing is read does not wait for slow documents of another', async () => {
  const pool = openPool({ size: 2 });
  const stop = new AbortController();
  const started = Promise.withResolvers<void>();
  const slow = { tenant: 'slow', signal: stop.signal };
  const reading = [
    askParser(pool, ['sleep'], slow),
    askParser(pool, ['pages', 1_000_000], { ...slow, onPage: () => started.resolve() }),
  ];
  const next = askParser(pool, ['calls'], slow);
  await started.promise;
  // One more is read of another tenant, one after the other, and none of the same.
  expect(await Promise.all(['a', 'b', 'a'].map((tenant) => askParser(pool, ['calls'], { tenant })))).toEqual([1, 1, 2]);
  stop.abort();
  for (const one of await Promise.allSettled([...reading, next]))
    expect(one).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
});

test('close ends what is read and what waits', async () => {
  const pool = openPool();
  const pid = await askParser(pool, ['pid']);
  const readings = [askParser(pool, ['loop']), askParser(pool, ['calls'])];
  const outcomes = Promise.allSettled(readings);
  await pool.close();
  expect(isAlive(pid)).toBe(false);
  for (const outcome of await outcomes) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'EngineError', code: 'unavailable' } });
  }
  await expect(askParser(pool, ['calls'])).rejects.toMatchObject({ code: 'unavailable' });
});

test('where no process can be started, reading is unavailable', async () => {
  const entry = new URL('./none.ts', import.meta.url);
  await expect(askParser(openPool({ entry }), ['calls'])).rejects.toMatchObject({
    name: 'EngineError',
    code: 'unavailable',
  });
});

test('what comes back is the document, cut', async () => {
  const pool = createParserPool({ size: 1, timeoutMs: 30_000, heapMb: 512 });
  pools.push(pool);
  const content = Array.from({ length: 100 }, (_, index) => `## Section ${index}\n\nÄpfel, 汉字 and 🙂.\n\n`).join('');
  const result = await pool.parse(requestOf(content, { extension: 'md', sizeTokens: 128, overlapTokens: 0 }));
  expect(result).toMatchObject({ format: 'markdown', pages: null, characters: content.length });
  expect(result.chunks.map((chunk) => chunk.content).join('')).toBe(content);
  expect(result.chunks[1]?.headingPath).toHaveLength(1);
});

describe('the parser', () => {
  test('gets no environment, arguments or folder of ours', async () => {
    expect(await askParser(openPool(), ['environment'])).toEqual([{ TZ: 'UTC' }, 3, path.parse(ROOT).root]);
  });

  test('cannot change what all objects inherit', async () => {
    expect(await askParser(openPool(), ['pollute'])).toBe(false);
  });

  test('reaches no network, file, process or thread, whichever way it tries', async () => {
    let connections = 0;
    const server = net.createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as net.AddressInfo;
    const outcomes = (await askWith(openPool({ entry: PARSER_DOORS }), String(port))) as Record<string, string>;
    server.close();
    expect(Object.keys(outcomes).length).toBeGreaterThan(80);
    expect(Object.entries(outcomes).filter(([, outcome]) => outcome !== 'refused')).toEqual([]);
    expect(connections).toBe(0);
  });
});

describe('without its parent a process ends, even in an endless loop', () => {
  test('when the parent is killed', async () => {
    const parent = spawn(process.execPath, [PARENT, '["loop"]'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const pid = await firstLine(parent);
    expect(isAlive(pid)).toBe(true);
    parent.kill('SIGKILL');
    await once(parent, 'close');
    await awaitEnd(pid);
  });

  test("when the parent's thread is ended", async () => {
    const thread = new Worker(PARENT, { argv: ['["loop"]'], stdout: true });
    const pid = await firstLine(thread);
    expect(isAlive(pid)).toBe(true);
    await thread.terminate();
    while (isAlive(pid) && !isZombie(pid)) await pause(10);
  });
});

test('processes that wait keep no process alive', async () => {
  const parent = spawn(process.execPath, [PARENT, '["calls"]'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(parent.stdout), once(parent, 'exit')]);
  const [pid, calls] = output.split('\n');
  expect([code, calls]).toEqual([0, '1']);
  await awaitEnd(pid);
});

describe.skipIf(!hasStrace())('strace sees no socket and no foreign file (skipped where strace is missing)', () => {
  test('of a parser that tries', async () => {
    // Port 9, discard: nobody is there, and nobody would hear.
    const { output, calls } = await traceParser([PARENT, '9'], 'parser-doors');
    expect(Object.keys(JSON.parse(output[0] ?? '') as object).length).toBeGreaterThan(80);
    expectNothingForeign(calls, 'parser-doors.ts');
  });

  test('of the parsers that are in use, whatever a document points to', async () => {
    const folder = tempFolder();
    const { output, calls } = await traceParser([READER, ...writePointers(folder)], 'parser-child');
    expect(output).toEqual(['html: Pointing', 'markdown: Pointing', 'email: Pointing', '']);
    expectNothingForeign(calls);
  });
});

/** Documents that name files and addresses which a careless reader would fetch. */
function writePointers(folder: string): string[] {
  const canary = path.join(folder, 'canary.txt');
  fs.writeFileSync(canary, 'canary');
  const paragraph = `<p>${'Pointing at things is not reading them. '.repeat(20)}</p>`;
  const html = `<!doctype html><html><head><title>Pointing</title><base href="http://127.0.0.1:9/">
    <link rel="stylesheet" href="style.css"><script src="script.js"></script></head><body><article><h1>Pointing</h1>${paragraph}
    <img src="http://127.0.0.1:9/image.png"><iframe src="file://${canary}"></iframe><object data="file:///etc/passwd"></object>
    </article></body></html>`;
  const documents = {
    'page.html': html,
    'notes.md': `# Pointing\n\n![image](http://127.0.0.1:9/image.png) [file](file://${canary})\n`,
    'mail.eml': `From: a@example.com\r\nSubject: Pointing\r\nContent-Type: text/html\r\n\r\n${html}`,
  };
  return Object.entries(documents).map(([name, content]) => {
    const file = path.join(folder, name);
    fs.writeFileSync(file, content);
    return file;
  });
}

/** Runs a script under strace. The system calls are those of the parser's process that it starts. */
async function traceParser(script: readonly string[], entry: string): Promise<{ output: string[]; calls: string[] }> {
  const folder = tempFolder();
  const trace = ['-f', '-ff', '-qq', '-s', '4096', '-o', path.join(folder, 'trace')];
  const watched = 'trace=%network,open,openat,creat,execve,clone,clone3,fork,vfork';
  const parent = spawn('strace', [...trace, '-e', watched, process.execPath, ...script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = await Promise.all([text(parent.stdout), once(parent, 'exit')]);
  const threads = new Map(
    fs.readdirSync(folder).map((file) => [file, fs.readFileSync(path.join(folder, file), 'utf8').split('\n')]),
  );
  const callsOf = (thread: string): string[] => {
    const lines = threads.get(thread)?.filter(Boolean) ?? [];
    const started = lines.flatMap((line) => /^clone3?\(.* = (\d+)$/.exec(line)?.[1] ?? []);
    return [...lines, ...started.flatMap((id) => callsOf(`trace.${id}`))];
  };
  const isParser = (line: string) => line.startsWith('execve(') && line.includes(entry);
  const parsers = [...threads].filter(([, lines]) => lines.some(isParser)).map(([thread]) => callsOf(thread));
  return { output: output.split('\n'), calls: parsers.flat() };
}

/** Where Node looks for a package that is not installed, too. */
function modulesAbove(folder: string): string[] {
  const above = path.dirname(folder);
  return above === folder ? [] : [path.join(above, 'node_modules'), ...modulesAbove(above)];
}

function expectNothingForeign(calls: readonly string[], entry = 'parser-child.ts'): void {
  const opened = calls.flatMap((line) => /^(?:open|openat|creat)\((?:AT_FDCWD, )?"([^"]+)"/.exec(line)?.[1] ?? []);
  expect(opened.filter((file) => file.endsWith(entry))).not.toEqual([]);
  const code = [ROOT, fs.realpathSync(path.join(ROOT, 'node_modules')), ...modulesAbove(ROOT)];
  const isCode = (file: string) => code.some((folder) => file.startsWith(`${folder}${path.sep}`));
  expect(opened.filter((file) => !OWN_FILES.test(file) && !isCode(file))).toEqual([]);
  // What is left are threads, how the process itself was started, what its own pipes are, and the end of one.
  const harmless = /^(open|openat|creat|clone|clone3|execve|getsockname|getsockopt)\(|^shutdown\(4, |^(\+\+\+|---) /;
  expect(calls.filter((line) => !harmless.test(line))).toEqual([]);
  expect(calls.filter((line) => line.startsWith('execve(')).length).toBe(1);
}

/** Of the system: what Node, its resolver and the C library read at their start. */
const OWN_FILES =
  /^\/(lib|lib64|usr\/lib|usr\/share\/zoneinfo|proc|sys|dev)\/|^\/etc\/(ld\.so|resolv\.conf|nsswitch\.conf|netsvc\.conf|svc\.conf)|\/openssl\.cnf$/;

function hasStrace(): boolean {
  try {
    execFileSync('strace', ['-V'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function firstLine(source: ChildProcess | Worker): Promise<string> {
  const [piece] = (await once(source.stdout as NodeJS.ReadableStream, 'data')) as [Buffer | string];
  return String(piece).trim();
}
