/** Translates graphs to the field names of the API. */
import type { MemoryGraph } from '../../engine/index.ts';
import type { GraphItem } from '../schemas/graph.ts';

export function graphItem({ memories, isCut, ...lines }: MemoryGraph): GraphItem {
  return {
    memories: memories.map(({ eventTime, createdAt, ...memory }) => ({
      ...memory,
      event_time: eventTime,
      created_at: createdAt,
    })),
    ...lines,
    truncated: isCut,
  };
}
