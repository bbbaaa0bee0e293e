/**
 * Measures Cairn beside what people would pick instead, on the same texts, vectors and questions in one run:
 *
 *     npm run bench -- --peers [--sizes 10000,100000] [--texts natural,template] [--systems cairn,fts5] [--cap 10]
 *
 * Each system runs in a process of its own, one after the other in a random order that `--seed` repeats. Prints one
 * JSON line a figure, and at the end the tables of docs/internals/performance.md.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRandom } from '../../src/engine/random.ts';
import { readArguments } from '../read-arguments.ts';
import { report } from '../report.ts';
import { KINDS, writeCorpus, type Kind } from './corpus.ts';
import { installPackages } from './install.ts';
import type { Message } from './measure-system.ts';
import { SYSTEMS, type SystemName } from './system.ts';
import { makeTables, type Figure } from './table.ts';

const USAGE = `npm run bench -- --peers [--sizes 10000,100000] [--texts ${KINDS.join(',')}] [--cap MINUTES] [--seed N]
  [--systems ${Object.keys(SYSTEMS).join(',')}]`;
/** Greatest number of minutes that `--cap` can allow: a day. */
const LONGEST_CAP = 1_440;
/** Heap of a measuring process, MB: Orama keeps all vectors there. */
const HEAP_MB = 8_192;

async function main(): Promise<void> {
  const options = readOptions();
  const random = createRandom(options.seed);
  report('seed', options.seed);
  const missing = options.systems.some((name) => SYSTEMS[name].isInstalled) ? installPackages() : undefined;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-peers-'));
  const figures: Figure[] = [];
  try {
    for (const texts of options.texts)
      for (const size of options.sizes) {
        writeCorpus(folder, texts, size);
        for (const system of shuffled(options.systems, random)) {
          const keep = ({ figure, value, more }: Message) => {
            figures.push({ system, texts, size, figure, value, more });
            report(figure, value, { system, texts, size, ...more });
          };
          const reason = reasonToLeaveOut(system, missing);
          if (reason !== undefined) keep({ figure: 'ended_after_s', value: 0, more: { reason } });
          else await measure({ system, size, folder, capMinutes: options.cap, keep });
        }
      }
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
  console.log(`\n${makeTables(figures)}`);
}

function readOptions() {
  const { values } = readArguments(
    USAGE,
    {
      peers: { type: 'boolean' },
      sizes: { type: 'string', default: '10000,100000' },
      texts: { type: 'string', default: 'natural' },
      systems: { type: 'string', default: Object.keys(SYSTEMS).join(',') },
      cap: { type: 'string', default: '10' },
      seed: { type: 'string', default: String(Date.now() % 100_000) },
    },
    ({ positionals, values: { sizes, texts, systems, cap, seed } }) =>
      positionals.length === 0 &&
      /^[1-9]\d{0,6}(?:,[1-9]\d{0,6})*$/.test(sizes) &&
      texts.split(',').every((kind) => KINDS.includes(kind as Kind)) &&
      systems.split(',').every((name) => Object.hasOwn(SYSTEMS, name)) &&
      Number(cap) > 0 &&
      Number(cap) <= LONGEST_CAP &&
      /^\d{1,9}$/.test(seed),
  );
  return {
    sizes: values.sizes.split(',').map(Number),
    texts: values.texts.split(',') as Kind[],
    systems: values.systems.split(',') as SystemName[],
    cap: Number(values.cap),
    seed: Number(values.seed),
  };
}

function shuffled<Item>(list: readonly Item[], random: () => number): Item[] {
  const keyed = list.map((item) => ({ item, key: random() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
}

function reasonToLeaveOut(system: SystemName, missing: string | undefined): string | undefined {
  if (SYSTEMS[system].isInstalled && missing !== undefined) return `it could not be installed (${missing})`;
  if (system === 'openmemory' && process.env.CAIRN_PEER_OPENMEMORY === undefined)
    return 'not measured, as CAIRN_PEER_OPENMEMORY names no built checkout';
  return undefined;
}

interface Measurement {
  readonly system: SystemName;
  readonly size: number;
  /** Holds the texts and questions. */
  readonly folder: string;
  readonly capMinutes: number;
  readonly keep: (message: Message) => void;
}

/** Measures one system. If the measurement does not come to an end, the last figure says why. */
async function measure({ system, size, folder, capMinutes, keep }: Measurement): Promise<void> {
  const own = path.join(folder, 'own');
  fs.mkdirSync(own);
  const begun = performance.now();
  const child = fork(path.join(import.meta.dirname, 'measure-system.ts'), [system, String(size), folder, own], {
    execArgv: ['--expose-gc', `--max-old-space-size=${HEAP_MB}`],
    stdio: ['ignore', 2, 2, 'ipc'],
    detached: true,
  });
  const end = () => endGroup(child);
  const interrupt = () => {
    end();
    process.exit(130);
  };
  process.on('exit', end).on('SIGINT', interrupt).on('SIGTERM', interrupt);
  let loaded = 0;
  child.on('message', (message: Message) => {
    if (message.figure !== 'progress') return keep(message);
    loaded = message.value;
    process.stderr.write(`${system}: ${loaded} of ${size}\n`);
  });
  let isTooLong = false;
  const cap = setTimeout(() => {
    isTooLong = true;
    end();
  }, capMinutes * 60_000);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(cap);
  end();
  process.off('exit', end).off('SIGINT', interrupt).off('SIGTERM', interrupt);
  fs.rmSync(own, { recursive: true });
  if (code === 0) return;
  const reason = isTooLong
    ? `ended after ${capMinutes} minutes, with ${loaded.toLocaleString('en')} memories loaded`
    : `it failed (${signal ?? `exit code ${code}`})`;
  keep({ figure: 'ended_after_s', value: (performance.now() - begun) / 1000, more: { reason } });
}

/** Ends a measuring process and the servers that it started: it leads a group of processes of its own. */
function endGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

await main();
