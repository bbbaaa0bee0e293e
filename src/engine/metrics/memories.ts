import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { censusGauge, started } from './series.ts';

/** Makes the metrics of memories: how they are added, how soon they are ready, and how many there are. */
export function createMemoryMetrics(registers: Registry[], sources: MetricSources) {
  return {
    adds: started(
      new Counter({
        name: 'cairn_adds_total',
        help: 'Memories offered to add, by outcome: accepted, duplicate, rejected.',
        labelNames: ['outcome'],
        registers,
      }),
      ['accepted', 'duplicate', 'rejected'].map((outcome) => ({ outcome })),
    ),
    sensitiveValues: started(
      new Counter({
        name: 'cairn_sensitive_total',
        help:
          'Sensitive values found before storing, by group (secrets, personal) and mode: redact counts values, mark ' +
          'kinds of a text, refuse texts.',
        labelNames: ['group', 'mode'],
        registers,
      }),
      ['secrets', 'personal'].flatMap((group) => ['mark', 'redact', 'refuse'].map((mode) => ({ group, mode }))),
    ),
    readyAfter: new Histogram({
      name: 'cairn_memory_ready_seconds',
      help:
        'Time from accepting a memory to a stage: encoded (found by its vectors), linked (all work is done); by ' +
        'priority: interactive, bulk. A memory is found by its words at once.',
      labelNames: ['stage', 'priority'],
      buckets: [0.5, 2, 10, 60],
      registers,
    }),
    memories: new Gauge({
      name: 'cairn_memories',
      help: 'Memories of all tenants, by primary sector and state: queued, ready, failed.',
      labelNames: ['sector', 'state'],
      registers,
      async collect() {
        const census = await sources.readCensus();
        for (const { sector, state, memories } of census?.memories ?? []) this.set({ sector, state }, memories);
      },
    }),
    waypoints: censusGauge({
      name: 'cairn_waypoints',
      help: 'Waypoints between memories, of all tenants.',
      registers,
      sources,
      read: ({ waypoints }) => waypoints,
    }),
  };
}
