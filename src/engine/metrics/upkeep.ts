import { Counter, type Registry } from 'prom-client';
import { CONSOLIDATION_METHODS } from '../types.ts';
import { started } from './series.ts';

/**
 * Makes the metrics of what happens to memories without a request: decay, archiving, expiry, consolidation, and the
 * removal of weak waypoints.
 */
export function createUpkeepMetrics(registers: Registry[]) {
  return {
    decayedMemories: new Counter({
      name: 'cairn_decayed_memories_total',
      help: 'Memories whose cached salience the decay job refreshed.',
      registers,
    }),
    archivedMemories: new Counter({
      name: 'cairn_archived_memories_total',
      help: 'Memories that the decay job archived because their salience fell under OM_ARCHIVE_BELOW.',
      registers,
    }),
    expiredMemories: new Counter({
      name: 'cairn_expired_memories_total',
      help: 'Memories erased because they had expired.',
      registers,
    }),
    gatheredMemories: started(
      new Counter({
        name: 'cairn_gathered_memories_total',
        help:
          'Memories made by consolidation, by method: from sentences of the sources, or from a text of the language ' +
          'model.',
        labelNames: ['method'],
        registers,
      }),
      CONSOLIDATION_METHODS.map((method) => ({ method })),
    ),
    prunedWaypoints: new Counter({
      name: 'cairn_pruned_waypoints_total',
      help: 'Waypoints removed because their weight fell under 0.05.',
      registers,
    }),
  };
}
