/**
 * Cost of traces: `npm run measure -- tracing-cost [MEMORIES]`. It measures the modules of OpenTelemetry that a process
 * loads while traces are off; the check for null that remains then; and the CPU time of the same adds and questions on
 * an engine without and with traces, in turn. Spans go to an exporter that drops them, so the cost of a collector is
 * left out. Prints one JSON line per figure.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openOtelTracing } from '../src/engine/adapters/otel-tracing.ts';
import { readConfig } from '../src/engine/config.ts';
import type { Engine } from '../src/engine/engine.ts';
import { openEngine } from '../src/engine/open-engine.ts';
import { silentLogger } from '../src/engine/ports.ts';
import { traced, type Tracing } from '../src/engine/tracing.ts';
import { newMemory } from '../test/support/new-memory.ts';
import { createQuestions, createTexts } from './load.ts';
import { percentile, report } from './report.ts';

const MEMORIES = Number(process.argv[2] ?? 20_000);
const ROUNDS = 40;
const ADDS = 100;
const QUESTIONS = 25;
const CHECKS = 20_000_000;
const TRACED_SAMPLED = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
const TRACED_UNSAMPLED = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'cairn-bench-'));
try {
  for (const mode of ['none', 'otlp']) report(`opentelemetry_modules_loaded_${mode}`, countLoaded(mode));
  measureCheck();
  await measureRequests();
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}

/**
 * Counts the modules of OpenTelemetry, and Cairn's adapter for it, that the main thread of a service loads until it
 * serves.
 */
function countLoaded(mode: string): number {
  const source = (file: string) => JSON.stringify(new URL(`../src/${file}`, import.meta.url).href);
  const script = path.join(folder, 'count-loaded.mjs');
  fs.writeFileSync(
    script,
    `import { registerHooks } from 'node:module';
    const loaded = new Set();
    registerHooks({ load(url, context, next) {
      if (/@opentelemetry.(sdk|exporter|otlp|core|resources|context)|otel-tracing/.test(url)) loaded.add(url);
      return next(url, context);
    } });
    const { readConfig } = await import(${source('engine/config.ts')});
    const { startService } = await import(${source('main.ts')});
    const service = await startService(readConfig(process.env));
    console.log(loaded.size);
    await service.stop();
    process.exit(0);`,
  );
  const settings = { OM_DB_PATH: path.join(folder, `${mode}.sqlite`), OM_PORT: '0', OM_TRACING: mode };
  const env = { PATH: process.env['PATH'], ...settings, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };
  return Number(execFileSync(process.execPath, [script], { env }).toString());
}

/** Measures the remaining cost while traces are off: a call with a check for null, compared with a call without. */
function measureCheck(): void {
  let sink = 0;
  const work = (): Promise<number> => ({ then: undefined, at: sink++ }) as never;
  const perCall = (call: () => unknown): number => {
    const before = process.cpuUsage();
    for (let at = 0; at < CHECKS; at++) call();
    const { user, system } = process.cpuUsage(before);
    return ((user + system) * 1_000) / CHECKS;
  };
  const options = {};
  const checked = () => traced(null, 'step', options, work);
  for (const call of [work, checked]) perCall(call);
  report('ns_of_a_check_while_off', perCall(checked) - perCall(work), { calls: CHECKS });
}

async function measureRequests(): Promise<void> {
  const drop = openOtelTracing(silentLogger, {
    export: (_, done) => done({ code: 0 }),
    shutdown: async () => {},
  });
  const ways: readonly (readonly [name: string, tracing: Tracing | null, traceparent: string])[] = [
    ['off', null, ''],
    ['unsampled', drop, TRACED_UNSAMPLED],
    ['sampled', drop, TRACED_SAMPLED],
  ];
  const engines = new Map<string, Engine>();
  for (const [name, tracing] of ways) {
    const config = readConfig({ OM_DB_PATH: path.join(folder, `${name}.sqlite`), OM_VEC_DIM: '256' });
    const engine = await openEngine({ config, tracing, writer: 'inline' });
    engines.set(name, engine);
    const texts = createTexts(MEMORIES);
    for (let at = 0; at < MEMORIES; at += 1_000)
      await (
        await engine.tenant('default')
      ).addMemories(texts.slice(at, at + 1_000).map((content) => newMemory({ content })));
  }
  const nextQuestion = createQuestions();
  const adds: Record<string, number[]> = { off: [], unsampled: [], sampled: [] };
  const queries: Record<string, number[]> = { off: [], unsampled: [], sampled: [] };
  // Rounds below 0 warm up.
  for (let round = -3; round < ROUNDS; round++) {
    const questions = Array.from({ length: QUESTIONS }, nextQuestion);
    const turn = (round + 3) % 3;
    const order = [...ways.slice(turn), ...ways.slice(0, turn)];
    for (const [name, tracing, traceparent] of order) {
      const tenant = await engines.get(name)!.tenant('default');
      const asRequest = <T>(work: () => Promise<T>): Promise<T> => {
        if (tracing === null) return work();
        const span = tracing.startRequest('bench', { traceparent, attributes: {} });
        return span.run(work).finally(() => span.end());
      };
      const addUs = await cpuUs(ADDS, (n) =>
        asRequest(() => tenant.addMemories([newMemory({ content: `${round} and ${n}: a note on nothing much` })])),
      );
      const queryUs = await cpuUs(QUESTIONS, (n) =>
        asRequest(() => tenant.query({ query: questions[n]!, k: 10, filter: {}, reinforce: false })),
      );
      if (round < 0) continue;
      adds[name]!.push(addUs);
      queries[name]!.push(queryUs);
    }
  }
  for (const [what, times] of [['add', adds] as const, ['query', queries] as const]) {
    report(`${what}_cpu_us_off`, percentile(times['off']!, 0.5), { memories: MEMORIES, rounds: ROUNDS });
    for (const name of ['unsampled', 'sampled']) {
      // Compared round by round, as the load of the machine changes from one round to the next.
      const percents = times[name]!.map((us, round) => 100 * (us / times['off']![round]! - 1));
      report(`${what}_percent_more_${name}`, percentile(percents, 0.5), {
        p25: percentile(percents, 0.25),
        p75: percentile(percents, 0.75),
      });
    }
  }
  for (const engine of engines.values()) await engine.close();
  await drop.close();
}

/** CPU time of one call, µs. */
async function cpuUs(calls: number, work: (n: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let n = 0; n < calls; n++) await work(n);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}
