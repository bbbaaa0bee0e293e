import { possibleNames } from '../entities/extract.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import {
  findEntities,
  hasRelations,
  mentioningMemories,
  relatedEntities,
  type RelatedEntity,
} from '../store/entities.ts';
import type { Arrival } from './candidate.ts';

export interface AugmentOptions {
  readonly filter: CompiledFilter;
  /** Whose graph is walked; undefined for everyone's. */
  readonly userIds: readonly string[] | undefined;
  /** 0..1 */
  readonly decayPerHop: number;
}

/** Entities of the query that are followed, entities that are reached, memories that are brought. */
const NAMED_MOST = 8;
const RELATED_MOST = 8;
const MEMORIES_MOST = 20;

/** How much two related entities have to do with each other, 0..1. */
const RELATION_WEIGHTS: Readonly<Record<string, number>> = {
  uses: 0.9,
  depends_on: 0.9,
  implements: 0.9,
  extends: 0.8,
  replaces: 0.8,
  configures: 0.8,
};
/** For relations that say less, and for those of an operator's own. */
const RELATION_WEIGHT = 0.6;

/**
 * Memories about entities that are related to those the query names, over at most one relation and in either direction:
 * a query for authentication also wakes what was said about JWT where a memory states that authentication uses JWT.
 * They pass the filter, as does the memory that states the relation, and compete with the other candidates for places.
 * @returns the strongest arrival of each memory; ties to the latest memory
 */
export function augment(store: Store, query: string, { filter, userIds, decayPerHop }: AugmentOptions): Arrival[] {
  if (!hasRelations(store)) return [];
  const named = findEntities(store, possibleNames(query), userIds, NAMED_MOST);
  if (named.length === 0) return [];
  const related = strongest(
    relatedEntities(
      store,
      named.map(({ entityNo }) => entityNo),
      filter,
    ),
  );
  if (related.length === 0) return [];
  const mentioning = mentioningMemories(
    store,
    related.map(({ entityNo }) => entityNo),
    filter,
    MEMORIES_MOST,
  );
  const arrivals = new Map<number, Arrival>();
  for (const [place, { memories }] of mentioning.entries()) {
    const { label, weight } = related[place]!;
    for (const seq of memories) {
      if (arrivals.has(seq)) continue;
      const activation = weight * decayPerHop;
      arrivals.set(seq, { seq, activation, from: null, via: 'entity', entity: label, weight, hops: 1, path: [] });
    }
  }
  return [...arrivals.values()].sort((a, b) => b.activation - a.activation || b.seq - a.seq).slice(0, MEMORIES_MOST);
}

/**
 * How much of the query a memory counts as covering that an entity brought: what it mentions stands for the word of the
 * query that it is related to, by as much as arrived over the relation. Without this such a memory would be scored as
 * if it had nothing to do with the query, and fall under every floor.
 * @param best the best coverage by words of any candidate
 */
export function coverageByRelation(arrival: Arrival | undefined, best: number): number {
  return arrival?.via === 'entity' ? arrival.activation * best : 0;
}

interface Reached {
  readonly entityNo: number;
  readonly label: string;
  readonly weight: number;
}

/** Each entity by its strongest relation, the strongest entities first; ties by number. */
function strongest(related: readonly RelatedEntity[]): Reached[] {
  const reached = new Map<number, Reached>();
  for (const { entityNo, label, ...relation } of related) {
    const weight = weightOf(relation);
    if (weight > (reached.get(entityNo)?.weight ?? 0)) reached.set(entityNo, { entityNo, label, weight });
  }
  return [...reached.values()].sort((a, b) => b.weight - a.weight || a.entityNo - b.entityNo).slice(0, RELATED_MOST);
}

/**
 * A rare entity says more about the memories that mention it. Rarity is 1 for one that a single memory mentions and
 * falls with the logarithm of the mentions: 0.5 for 100 of 10,000 memories.
 */
function weightOf({ relation, mentions, memories }: Pick<RelatedEntity, 'relation' | 'mentions' | 'memories'>): number {
  const rarity = 1 - Math.log(Math.max(1, mentions)) / Math.log(Math.max(2, memories) + 1);
  return (RELATION_WEIGHTS[relation] ?? RELATION_WEIGHT) * rarity;
}
