import type { Tracing } from '../tracing.ts';
import type { StageTrace } from '../types.ts';

/** The outcome of a stage: its result, the number of items in it (`out`), and a note for the explanation. */
interface StageOutcome<T> {
  readonly value: T;
  readonly out: number;
  readonly note?: string;
}

/** A record of the stages of one query, with the time that each took. */
export interface Trace {
  /** The stages that have ended, in order. */
  readonly stages: readonly StageTrace[];
  /**
   * Runs a stage and records it. A stage that throws is not recorded.
   * @param entering number of items that enter the stage
   */
  run<T>(stage: string, entering: number, work: () => StageOutcome<T>): T;
  /**
   * Awaits a call of a model's provider and records it as a stage. A call that throws is not recorded.
   * @param entering number of items that enter the stage
   * @param about note for a call that succeeded
   * @returns the result of `work`; null means that the provider failed
   */
  awaited<T>(stage: string, entering: number, work: () => Promise<T | null>, about?: string): Promise<T | null>;
}

/**
 * Creates an empty trace for one query.
 * @param tracing tracing in which each stage also becomes a span; null if the request is not traced
 */
export function createTrace(tracing: Tracing | null): Trace {
  const stages: StageTrace[] = [];
  /** Records a stage of the query, also as a span. The span does not get the note, which may quote the query. */
  const record = (startedAt: number, stage: StageTrace): void => {
    stages.push(stage);
    if (tracing === null) return;
    const attributes = { 'cairn.stage.in': stage.in, 'cairn.stage.out': stage.out };
    tracing.start(stage.stage, { startedAt, attributes })?.end();
  };
  return {
    stages,
    run(stage, entering, work) {
      const start = performance.now();
      const { value, out, note } = work();
      const ms = performance.now() - start;
      record(start, { stage, ms, in: entering, out, ...(note === undefined ? {} : { note }) });
      return value;
    },
    async awaited(stage, entering, work, about) {
      const start = performance.now();
      const value = await work();
      const note = value === null ? 'the provider failed; went on without it' : about;
      const ms = performance.now() - start;
      const out = value === null ? 0 : entering;
      record(start, { stage, ms, in: entering, out, ...(note === undefined ? {} : { note }) });
      return value;
    },
  };
}
