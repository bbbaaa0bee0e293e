/**
 * Cost of the recall log: `npm run measure -- recall-cost [MEMORIES]`. Two engines over copies of a file, whose
 * memories have vectors as by default, one of which keeps no recalls, answer the same questions in turn. It reports the
 * time to the answer and the CPU time of all threads, the writes of the log included, of the engine with the log
 * against the one without. Prints one JSON line per figure.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from '../src/engine/config.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { fillFile } from './filled-file.ts';
import { createQuestions } from './load.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 10_000);
const ROUNDS = 40;
const QUESTIONS = 50;
/** Pause after a round, ms, in which the log of its recalls is written: longer than the buffer waits. */
const WRITTEN_MS = 400;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
await fillFile(path.join(folder, 'off.sqlite'), MEMORIES);
fs.copyFileSync(path.join(folder, 'off.sqlite'), path.join(folder, 'on.sqlite'));
const engines = { off: await start('off', '0'), on: await start('on', '7') };
try {
  const waits: Record<keyof typeof engines, number[]> = { off: [], on: [] };
  const cpus: Record<keyof typeof engines, number[]> = { off: [], on: [] };
  const nextQuestion = createQuestions();
  // Rounds below 0 warm up.
  for (let round = -3; round < ROUNDS; round++) {
    const questions = Array.from({ length: QUESTIONS }, nextQuestion);
    for (const name of round % 2 === 0 ? (['off', 'on'] as const) : (['on', 'off'] as const)) {
      const before = process.cpuUsage();
      const took = await ask(name, questions);
      await pause(WRITTEN_MS);
      const { user, system } = process.cpuUsage(before);
      if (round < 0) continue;
      waits[name].push(percentile(took, 0.5));
      cpus[name].push((user + system) / 1_000 / QUESTIONS);
    }
  }
  compare('query_ms', waits);
  compare('query_cpu_ms', cpus);
} finally {
  await Promise.all([engines.off.close(), engines.on.close()]);
  fs.rmSync(folder, { recursive: true, force: true });
}

/** Opens an engine on the copy with this name, which keeps its recalls for `days` days; '0' keeps none. */
function start(name: string, days: string) {
  const file = path.join(folder, `${name}.sqlite`);
  return openEngine({ config: readConfig({ OM_DB_PATH: file, OM_RECALL_DAYS: days }) });
}

/** Asks the questions one after the other. @returns the time to each answer, ms */
async function ask(name: keyof typeof engines, questions: readonly string[]): Promise<number[]> {
  const tenant = await engines[name].tenant('default');
  const took: number[] = [];
  for (const query of questions) {
    const asked = performance.now();
    await tenant.query({ query, k: 10, filter: {}, reinforce: false });
    took.push(performance.now() - asked);
  }
  return took;
}

/** Compares round by round, as the load of the machine changes from one round to the next. */
function compare(figure: string, { off, on }: Record<keyof typeof engines, readonly number[]>): void {
  const percents = on.map((value, round) => 100 * (value / off[round]! - 1));
  report(`${figure}_without_log`, percentile(off, 0.5), { memories: MEMORIES, rounds: ROUNDS });
  report(`${figure}_with_log`, percentile(on, 0.5));
  report(`${figure}_percent_more`, percentile(percents, 0.5), {
    p25: percentile(percents, 0.25),
    p75: percentile(percents, 0.75),
  });
}
