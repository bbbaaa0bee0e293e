/**
 * Helpers for tests of moves between engines: a data folder with rows in every table, a dump of its rows, and the move
 * itself.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { readConfig } from '../../src/engine/config.ts';
import { openControlFile } from '../../src/engine/control/control-file.ts';
import { move, type MoveOptions, type MoveReport } from '../../src/engine/move/move-folder.ts';
import { openStore } from '../../src/engine/store/open-store.ts';
import { liveThrough } from '../conformance/store.ts';
import { dumpTables, newMemory, openTestEngine, START, type TestEngine } from './engine-fixture.ts';
import { newDocument, upload } from './new-document.ts';
import { tempFolder } from './temp-folder.ts';

/** Time at which the moves are made, long after the data was written (Unix ms). */
export const NOW = START + 400 * 86_400_000;
/**
 * Tables in which FTS5 stores its terms. Their rows may differ although the terms are the same, so they are not
 * compared.
 */
const SEGMENTS = ['memory_text_data', 'memory_text_idx', 'memory_text_config'];

/** Starts `cairn move` as a process that can be killed. */
export function spawnMove(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const main = path.resolve(import.meta.dirname, '../../src/cli/main.ts');
  const child = spawn(process.execPath, [main, 'move', ...args], {
    env: { PATH: process.env.PATH ?? '', OM_VEC_DIM: '256', ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let error = '';
  child.stderr.on('data', (text: Buffer) => (error += text.toString()));
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    error,
  }));
  return { ended, kill: () => child.kill('SIGKILL') };
}

interface Run extends Pick<MoveOptions, 'database' | 'direction'>, Partial<Pick<MoveOptions, 'showProgress'>> {
  readonly file: string;
  readonly tenant?: string;
  readonly keepsSource?: boolean;
  readonly settings?: Readonly<Record<string, string>>;
}

const hidden: MoveOptions['showProgress'] = () => ({ update() {}, stop() {} });

/** Runs a move in this process. */
export function run({
  file,
  keepsSource = false,
  settings = {},
  showProgress = hidden,
  ...options
}: Run): Promise<MoveReport> {
  return move({
    ...options,
    keepsSource,
    folder: readConfig({ OM_DB_PATH: file, OM_VEC_DIM: '256', ...settings }),
    now: NOW,
    showProgress,
  });
}

export type Dump = Record<string, Record<string, unknown[]>>;

/**
 * Returns every row of both tenants and of the control database, without the mark of a move and the counter of changes.
 */
export function dumpAll(file: string): Dump {
  const dump = (name: string) => {
    const store = openStore(name, { role: 'reader' });
    try {
      const all = dumpTables(store, SEGMENTS);
      // The third column is the number of the segment that has the row's terms.
      const sizes = (all.memory_text_docsize as unknown[][]).map(([id, sizes]) => [id, sizes]);
      return { ...all, memory_text_docsize: sizes };
    } finally {
      store.close();
    }
  };
  const control = openControlFile(file.replace('.sqlite', '.control.sqlite'));
  try {
    control.db.exec('PRAGMA query_only = ON');
    const all = dumpTables(control as never, ['access_generation']);
    const info = (all.store_info as [string, string][]).filter(([key]) => !key.startsWith('moved_to'));
    return {
      default: dump(file),
      acme: dump(path.join(file.replace('.sqlite', '.tenants'), 'acme.sqlite')),
      control: { ...all, store_info: info },
    };
  } finally {
    control.close();
  }
}

/** Makes a data folder with two tenants: one with rows in every table, and a small one. */
export async function fullFolder(): Promise<{ file: string; secret: string; ids: string[] }> {
  const file = path.join(tempFolder(), 'cairn.sqlite');
  const fixture = await openTestEngine({ file, settings: { OM_EVENTS: 'true' } });
  await liveThrough(fixture);
  const ids = await fill(fixture);
  const { control } = fixture.engine;
  control.createTenant('acme');
  const { secret } = control.createKey({ tenantId: 'acme', role: 'write', label: 'of acme' });
  control.putSetting('acme', 'retrieval', '{"k":3}');
  control.limits.change({ tenantId: 'acme' }, { max_memories: 500 });
  const acme = await fixture.engine.tenant('acme');
  await acme.addMemories([newMemory({ content: 'The ferry to Altona leaves at noon.', userId: 'zoe' })]);
  await fixture.close();
  return { file, secret, ids };
}

async function fill(fixture: TestEngine): Promise<string[]> {
  const { tenant } = fixture;
  const texts = [
    'Anna moved from Berlin to Hamburg in March. She works at the harbour.',
    'Anna moved from Berlin to Hamburg in March; she works at the harbour.',
    'The ferry to Altona leaves at noon 🚢, says Zoë.',
    'Zero \0 and U+10FFFE \u{10fffe} are "quoted" \\ here.',
    '灯台守は毎日船を数える。',
    ...Array.from({ length: 20 }, (_, n) => `Watch ${n}: the lighthouse keeper counts ${n * 7} ships.`),
  ];
  const { outcomes } = await tenant.addMemories(
    texts.map((content, n) =>
      newMemory({
        content,
        userId: n % 2 ? 'ana' : 'bob',
        sessionId: `s${n % 3}`,
        tags: [`t${n % 3}`],
        importance: 0.1,
      }),
    ),
  );
  const ids = outcomes.map((outcome) => (outcome as { id: string }).id);
  await fixture.drain();
  await tenant.linkMemories({ src: ids[0]!, dst: ids[2]!, type: 'supports', weight: 1 / 3 });
  await tenant.supersedeMemory({ oldId: ids[5]!, newId: ids[7]! });
  await tenant.patchMemory(ids[9]!, { content: 'Anna lives in Altona now.' });
  await tenant.as('registrar').createStandingQuery({
    query: 'What does Anna do?',
    userId: 'ana',
    filter: {},
    given: {},
    minScore: 0.05,
  });
  await tenant.as('registrar').createWebhook({ url: 'https://example.com/hook', kinds: [], userId: 'ana' });
  await tenant.addDocument(
    newDocument(await upload(tenant, '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nRun the job.\n'), {
      userId: 'ana',
      tags: ['ops'],
    }),
  );
  await tenant.putItem({
    ...newMemory({ content: '' }),
    ...{ userId: 'ana', namespace: 'settings.editor', key: 'tabs', content: null, value: { width: 2 }, ttlMs: null },
  });
  await tenant.changeLog({ userId: 'ana', sessionId: 'talk' }, { items: [{ say: 1 }], operationId: 'op 1' });
  await fixture.drain();
  await tenant.tendStanding(AbortSignal.timeout(600_000));
  await tenant.putEval({
    name: 'home',
    guard: true,
    items: [{ query: 'Where does Anna live?', userId: 'ana', expected: [ids[1]!], k: 5 }],
  });
  await tenant.runEval('home');
  await tenant.query({ query: 'Where does Anna live?', k: 5, filter: { userIds: ['ana'] } });
  // Handed in and not read: its file waits.
  await tenant.addDocument(newDocument(await upload(tenant, `# Waiting\n\n${'A long text. '.repeat(40_000)}`)));
  return ids;
}
