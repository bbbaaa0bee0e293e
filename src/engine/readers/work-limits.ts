import type { Config } from '../config.ts';

/** Returns the work that the settings allow one request, such as a query or a graph: bytes read, and time (ms). */
export function workLimits({ OM_QUERY_WORK_MB, OM_QUERY_DEADLINE_MS }: Config): {
  readonly bytes: number;
  readonly deadlineMs: number;
} {
  return { bytes: OM_QUERY_WORK_MB * 1024 * 1024, deadlineMs: OM_QUERY_DEADLINE_MS };
}
