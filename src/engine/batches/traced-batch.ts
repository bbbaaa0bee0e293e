import { queueServerOf } from '../config.ts';
import type { StepContext } from '../steps/step-context.ts';
import { messageAttributes, tracesOf, traced } from '../tracing.ts';

/**
 * Does work for jobs that were claimed together, as a span in the traces to which the jobs belong. If a queue carried
 * the jobs, the span is the processing of its message, by OpenTelemetry's conventions. Without tracing, only the work
 * is done.
 */
export function tracedBatch<T>(
  { tracing, config }: Pick<StepContext, 'tracing' | 'config'>,
  step: string,
  claims: readonly { readonly trace: string | null }[],
  work: () => Promise<T>,
): Promise<T> {
  if (!tracing) return work();
  const isQueued = queueServerOf(config) !== null;
  const attributes = isQueued ? messageAttributes('process', step, claims.length) : { 'cairn.jobs': claims.length };
  const kind = isQueued ? 'consumer' : 'internal';
  return traced(tracing, `process ${step}`, { kind, attributes, continues: tracesOf(claims) }, work);
}
