import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { damageFile } from './damage-file.ts';
import { newDocument, upload } from './new-document.ts';
import { newMemory } from './new-memory.ts';
import { openTestEngine } from './engine-fixture.ts';
import { tempFolder } from './temp-folder.ts';

/** One line of the output of the process that works with damaged copies: an operation with its result or error. */
export interface CopyReport {
  /** Number of the copy, from 0. */
  readonly copy: number;
  /** Name of the operation; `end` after the copy was closed. */
  readonly ask: string;
  readonly said?: string;
  readonly error?: {
    readonly name: string;
    readonly code?: string | undefined;
    readonly message: string;
    readonly stack: string;
  };
}

/** Result of working with damaged copies of a data folder. */
export interface DamageOutcome {
  /** Number of copies of which at least one operation was refused because of the damage. */
  readonly refused: number;
  /**
   * What must not happen but did: a hang, a crash, an unclear error, a text of another tenant. Empty if all is well.
   */
  readonly wrong: string[];
}

/** For each tenant, a word that only its own texts contain. */
const OWN_WORDS = { default: 'alphacanary', other: 'betacanary' } as const;
/** Longest time without output, after which the process counts as hanging (ms). */
const HANG_MS = 180_000;

/**
 * Makes a data folder with two tenants that have memories, links, documents and waiting jobs.
 * @returns the path of the default tenant's file
 */
export async function makeTwoTenants(settings: Readonly<Record<string, string>> = {}): Promise<string> {
  const fixture = await openTestEngine({ settings });
  const { engine, clock } = fixture;
  engine.control.createTenant('other');
  for (const [id, word] of Object.entries(OWN_WORDS)) {
    const tenant = await engine.tenant(id);
    const contents = Array.from(
      { length: 60 },
      (_, n) => `The ${word} ${n} leaves the harbour of Oslo by ferry. ${'It sails on. '.repeat(n)}`,
    );
    const { outcomes } = await tenant.addMemories(
      contents.map((content, n) => ({
        ...newMemory({ content, userId: n % 3 ? 'ann' : 'bob', tags: [`tag${n % 5}`], metadata: { n, word } }),
      })),
    );
    const ids = outcomes.flatMap((outcome) => (outcome.kind === 'accepted' ? [outcome.id] : []));
    await tenant.addDocument(
      newDocument(await upload(tenant, `# Harbour\n\nThe ${word} of the heron.\n\n`.repeat(40)), { userId: 'ann' }),
    );
    if (id === 'default') await fixture.drain();
    clock.advance(60_000);
    await tenant.linkMemories({ src: ids[0]!, dst: ids[1]!, type: 'supports' });
    await tenant.patchMemory(ids[2]!, { content: `The ${word} was patched.` });
    await tenant.deleteMemory(ids[3]!);
    await tenant.addMemories([newMemory({ content: `This ${word} waits.` })]);
  }
  await fixture.close();
  return fixture.file;
}

/**
 * Makes one damaged copy of the data folder for each seed, lets a process work with all of them, and judges its output.
 */
export async function tryDamagedCopies(
  file: string,
  seeds: readonly number[],
  env: NodeJS.ProcessEnv = {},
): Promise<DamageOutcome> {
  const root = tempFolder();
  const damages: string[] = [];
  const copies = seeds.map((seed) => {
    const folder = path.join(root, String(seed));
    fs.cpSync(path.dirname(file), folder, { recursive: true });
    const copy = path.join(folder, path.basename(file));
    damages.push(damageFile(copy, seed));
    return copy;
  });
  const wrong: string[] = [];
  const refused = new Set<number>();
  let left = copies;
  while (left.length > 0) {
    const base = copies.length - left.length;
    const last = await watch(left, env, (line) => {
      const problem = judge(line);
      if (problem !== undefined) wrong.push(`${damages[base + line.copy]}: ${line.ask}: ${problem}`);
      if (line.error !== undefined) refused.add(base + line.copy);
    });
    if (last.ended) break;
    wrong.push(`${damages[base + last.copy]}: after ${last.ask}: ${last.how}`);
    left = left.slice(last.copy + 1);
  }
  return { refused: refused.size, wrong };
}

/**
 * Starts the process on some copies, and calls `onLine` with each line of its output.
 * @returns the last line, and how the process ended
 */
async function watch(copies: readonly string[], env: NodeJS.ProcessEnv, onLine: (line: CopyReport) => void) {
  const main = path.resolve(import.meta.dirname, 'damaged-copies-main.ts');
  const child = spawn(process.execPath, ['--max-old-space-size=1024', main, ...copies], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (data: Buffer) => void (errors = (errors + data.toString()).slice(-2_000)));
  let last: CopyReport = { copy: 0, ask: 'start' };
  let hung = false;
  const kill = () => {
    hung = true;
    child.kill('SIGKILL');
  };
  let timer = setTimeout(kill, HANG_MS);
  const closed = once(child, 'close') as Promise<[number | null, string | null]>;
  for await (const text of readline.createInterface({ input: child.stdout })) {
    clearTimeout(timer);
    timer = setTimeout(kill, HANG_MS);
    last = JSON.parse(text) as CopyReport;
    onLine(last);
  }
  const [code, signal] = await closed;
  clearTimeout(timer);
  const how = hung ? 'it hung' : `the process ended (${signal ?? code}) ${errors}`;
  return {
    copy: last.copy,
    ask: last.ask,
    ended: code === 0 && last.copy === copies.length - 1 && last.ask === 'end',
    how,
  };
}

/**
 * Returns what is wrong with the result of an operation; undefined if it is a right answer, or an error that says what
 * to do.
 */
function judge({ ask, said = '', error }: CopyReport): string | undefined {
  const [own, foreign] = ask.startsWith('other')
    ? [OWN_WORDS.other, OWN_WORDS.default]
    : [OWN_WORDS.default, OWN_WORDS.other];
  if ((said + (error?.message ?? '')).includes(foreign)) return 'a text of another tenant';
  if (error === undefined) {
    return ask === 'other: query' && !said.includes(own) ? 'the tenant with a sound file found nothing' : undefined;
  }
  if (ask.startsWith('other')) return `the tenant with a sound file got ${error.stack || error.message}`;
  if (error.name !== 'EngineError') return `unclear: ${error.stack || error.message}`;
  if (error.code !== 'internal' && error.code !== 'unprocessable') {
    // Rows that the damage took away are not there any more.
    return ['not_found', 'conflict', 'invalid'].includes(error.code ?? '')
      ? undefined
      : `${error.code}: ${error.message}`;
  }
  return /(?:cairn\.sqlite\b|the database file|the word index) .*(?:damaged|not a SQLite database|cannot be opened|not one that holds memories|use a newer Cairn|before Cairn 0\.1\.0)/.test(
    error.message,
  )
    ? undefined
    : `unclear: ${error.message} ${error.stack}`;
}
