/**
 * Main module of one of several API processes (`OM_API_PROCESSES`). It serves HTTP and runs queries. Its parent process
 * makes the commits, dispatches new jobs and joins the metrics. It ends when the parent tells it to, or has ended
 * itself.
 */

import type { Socket } from 'node:net';
import type { Activity } from '../../activity.ts';
import { createTracing } from '../../engine/adapters/index.ts';
import {
  type Config,
  createMetrics,
  type Engine,
  openEngine,
  packInput,
  type QueueState,
  releaseMemoryAfterStart,
  VERSION,
} from '../../engine/index.ts';
import { createLogger } from '../../process.ts';
import { serveConnections } from '../server.ts';
import { prepareApp } from '../start.ts';
import { type Channel, createChannel, type Handover } from './channel.ts';

type GroupReply = Awaited<ReturnType<Engine['lead']['transport']['commit']>>;

interface RunningProcess {
  accept(socket: Socket): void;
  stop(): Promise<void>;
  metricsJson(): Promise<object>;
}

const running = Promise.withResolvers<RunningProcess>();
let queueState: QueueState = { mode: 'embedded' };

// A signal from the terminal reaches every process of its group. The process that started this one decides.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
process.on('disconnect', () => process.exit(1));

const lead = createChannel(process, {
  start: async ({ config, number }: { config: Config; number: number }) => {
    running.resolve(await start(config, number));
    await running.promise;
  },
  metrics: async () => (await running.promise).metricsJson(),
  queueState: (state: QueueState) => void (queueState = state),
  stop: async () => {
    await (await running.promise).stop();
    // The answer leaves before the pipe is closed.
    setImmediate(() => process.exit(0));
  },
});

process.on('message', ({ kind, id }: Handover, socket?: Socket) => {
  if (kind !== 'connection') return;
  lead.tell('taken', id);
  if (socket !== undefined) void running.promise.then((api) => api.accept(socket)); // Else its client has left.
});

async function start(config: Config, number: number): Promise<RunningProcess> {
  const logger = createLogger(config, `api-${number}`);
  const tracing = await createTracing(config, logger);
  const metrics = await createMetrics();
  metrics.watchProcess(VERSION);
  const engine = await openEngine({ config, logger, metrics, tracing, writer: 'thread', lead: leadOver(lead) });
  const stop = new AbortController();
  const app = await prepareApp(
    {
      engine,
      metricsText: () => lead.ask<string>('metricsText'),
      activity: () => lead.ask<Activity>('activity'),
    },
    stop.signal,
  );
  const { accept, closed } = serveConnections(app, engine, stop.signal);
  releaseMemoryAfterStart();
  return {
    accept,
    metricsJson: () => metrics.registry.getMetricsAsJSON(),
    async stop() {
      stop.abort();
      await closed;
      await engine.close();
      await tracing?.close();
    },
  };
}

/** Makes the part of the engine that commits and dispatches, over the channel to the parent process. */
function leadOver(channel: Channel): Engine['lead'] {
  return {
    transport: {
      commit: (group) => channel.ask<GroupReply>('commit', group),
      pack: packInput,
      evict: (path) => channel.ask<void>('evict', path),
      close: async () => {},
    },
    dispatcher: {
      dispatch: (path, step) => channel.tell('dispatch', { path, step }),
      state: () => queueState,
      close: async () => {},
    },
  };
}
