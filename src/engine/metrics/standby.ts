import { Counter, Gauge, type Registry } from 'prom-client';
import { STANDBY_OUTCOMES } from '../standby-outcomes.ts';
import { shownOnceSet, started } from './series.ts';

/** Makes the metrics of the standby that answers reads. They have series only with OM_DATABASE_READ_URL. */
export function createStandbyMetrics(registers: Registry[]) {
  let readState: (() => boolean) | undefined;
  const standbyReads = new Counter({
    name: 'cairn_standby_reads_total',
    help:
      'Reads that the standby of OM_DATABASE_READ_URL might answer, by outcome: it did (standby); or the primary ' +
      'did, since the standby had not received what the read needs (behind), gave no answer (failed) or is down.',
    labelNames: ['outcome'],
    registers,
  });
  return {
    /**
     * Registers `isUp`, which tells at each scrape whether the standby is read, and shows the count of its reads from 0
     * on.
     */
    watchStandby(isUp: () => boolean): void {
      readState = isUp;
      started(
        standbyReads,
        STANDBY_OUTCOMES.map((outcome) => ({ outcome })),
      );
    },
    standbyReads,
    standbyUp: shownOnceSet(
      new Gauge({
        name: 'cairn_standby_up',
        help: 'Whether the standby of OM_DATABASE_READ_URL is read: 1, or 0 while the primary answers in its place.',
        aggregator: 'min',
        registers,
        collect() {
          if (readState !== undefined) this.set(readState() ? 1 : 0);
        },
      }),
    ),
  };
}
