/** Finds memories about entities that are related to the entities of the query. */

import { possibleNames } from '../entities/extract.ts';
import type { CompiledFilter } from '../store/filter.ts';
import type { Store } from '../store/open-store.ts';
import {
  findEntities,
  hasRelations,
  mentioningMemories,
  type NamedEntity,
  relatedEntities,
  type RelatedEntity,
} from '../store/entities.ts';
import type { Arrival } from './candidate.ts';

/** What `augment` may return, and how much activation it passes on. */
export interface AugmentOptions {
  /** Filter that the returned memories must pass; the memories that state the relations must pass it, too. */
  readonly filter: CompiledFilter;
  /** Users whose entities are searched; undefined for all users. */
  readonly userIds: readonly string[] | undefined;
  /** Factor on the activation that passes over a relation, 0..1. */
  readonly decayPerHop: number;
}

/** Greatest number of entities in the query whose relations are followed: those with the fewest mentions. */
const MAX_NAMED = 8;
/** Greatest number of related entities whose memories are read: those with the strongest relations. */
const MAX_RELATED = 8;
/**
 * Greatest number of memories that are returned, and greatest number of the latest memories that are read for each
 * related entity.
 */
const MAX_MEMORIES = 20;

/** Weight of each type of relation, 0..1: the share of activation that the relation passes on. */
const RELATION_WEIGHTS: Readonly<Record<string, number>> = {
  uses: 0.9,
  depends_on: 0.9,
  implements: 0.9,
  extends: 0.8,
  replaces: 0.8,
  configures: 0.8,
};
/** Weight of a relation whose type `RELATION_WEIGHTS` does not list, such as a type that an operator defined. */
const RELATION_WEIGHT = 0.6;

/**
 * Finds memories about entities that have a relation, in either direction, to an entity in the query. If a memory
 * states that authentication uses JWT, a query for authentication also finds memories about JWT. The returned memories
 * and the memory that states the relation must pass the filter. At most 8 entities of the query and 8 related entities
 * are followed, and none that very many memories mention (a hub, as `findEntities` says).
 * @returns at most 20 memories, each with the strongest activation that reached it, strongest first; of equal ones the
 *   latest memory first. The list is empty if the query names no known entity or the file has no relations.
 */
export function augment(store: Store, query: string, { filter, userIds, decayPerHop }: AugmentOptions): Arrival[] {
  const named = findNamed(store, query, userIds).filter(({ isRelated }) => isRelated);
  if (named.length === 0) return [];
  const entityNos = named.map(({ entityNo }) => entityNo);
  const related = strongest(relatedEntities(store, entityNos, filter), decayPerHop);
  const arrivals = new Map<number, Arrival>();
  for (let at = 0; at < related.length && arrivals.size < MAX_MEMORIES;) {
    const batch = related.slice(at, (at = endOfBatch(related, at, MAX_MEMORIES - arrivals.size)));
    for (const arrival of arrivalsAt(store, batch, filter)) {
      if (!arrivals.has(arrival.memoryNo)) arrivals.set(arrival.memoryNo, arrival);
    }
  }
  return [...arrivals.values()]
    .sort((a, b) => b.activation - a.activation || b.memoryNo - a.memoryNo)
    .slice(0, MAX_MEMORIES);
}

/**
 * Finds the entities that a query names, without hubs, at most 8, those with the fewest mentions; none if the file has
 * no relations between entities, since only these are followed.
 */
export function findNamed(store: Store, query: string, userIds: AugmentOptions['userIds']): NamedEntity[] {
  return hasRelations(store) ? findEntities(store, possibleNames(query), userIds, MAX_NAMED) : [];
}

/**
 * Finds the end of the next batch of entities: as many as have mentions for `room` memories, and all further entities
 * with the same activation as the last of them. Every entity after the batch has a lower activation, so its memories
 * rank lower.
 * @param room number of memories that may still be added
 * @returns the index in `related` after the last entity of the batch
 */
function endOfBatch(related: readonly Reached[], start: number, room: number): number {
  let end = start;
  for (let mentions = 0; end < related.length; end += 1) {
    if (mentions >= room && related[end]!.activation < related[end - 1]!.activation) break;
    mentions += Math.min(MAX_MEMORIES, related[end]!.mentions);
  }
  return end;
}

/**
 * Lists the latest memories that mention each entity and pass the filter, as arrivals: with the entity's activation.
 */
function arrivalsAt(store: Store, entities: readonly Reached[], filter: CompiledFilter): Arrival[] {
  const entityNos = entities.map(({ entityNo }) => entityNo);
  return mentioningMemories(store, entityNos, filter, MAX_MEMORIES).flatMap(({ memories }, place) => {
    const { label: entity, weight, activation } = entities[place]!;
    return memories.map((memoryNo): Arrival => {
      return { memoryNo, activation, from: null, via: 'entity', entity, weight, hops: 1, path: [] };
    });
  });
}

/**
 * Adds memories reached from entities to `arrivals`, the map of memories reached over links, by `memoryNo`. If both
 * reached a memory, the stronger activation is kept; of two equal ones, the one over links.
 */
export function addArrivals(arrivals: Map<number, Arrival>, related: readonly Arrival[]): void {
  for (const arrival of related) {
    if (arrival.activation > (arrivals.get(arrival.memoryNo)?.activation ?? 0)) arrivals.set(arrival.memoryNo, arrival);
  }
}

/**
 * Returns a value for `Fit.coverage` of a memory that was reached from an entity: its activation times the best
 * coverage by words. The entity that the memory mentions counts in place of the query's word that is related to it; by
 * its own words, such a memory would be scored as if it had nothing to do with the query.
 * @param best the best coverage by words of any candidate
 * @returns 0 for a memory that was reached over a link or not at all
 */
export function coverageByRelation(arrival: Arrival | undefined, best: number): number {
  return arrival?.via === 'entity' ? arrival.activation * best : 0;
}

/** An entity that is related to an entity of the query, with the strongest of its relations. */
interface Reached {
  readonly entityNo: number;
  readonly label: string;
  readonly weight: number;
  /** Activation that the memories about the entity get, 0..1. */
  readonly activation: number;
  /** Number of memories that mention the entity. */
  readonly mentions: number;
}

/**
 * Keeps the strongest relation of each entity and returns the entities, strongest first, at most `MAX_RELATED`; equal
 * ones by ascending `entityNo`.
 */
function strongest(related: readonly RelatedEntity[], decayPerHop: number): Reached[] {
  const reached = new Map<number, Reached>();
  for (const entity of related) {
    const { entityNo, label, mentions } = entity;
    const weight = weightOf(entity);
    if (weight <= (reached.get(entityNo)?.weight ?? 0)) continue;
    reached.set(entityNo, { entityNo, label, weight, activation: weight * decayPerHop, mentions });
  }
  return [...reached.values()].sort((a, b) => b.weight - a.weight || a.entityNo - b.entityNo).slice(0, MAX_RELATED);
}

/**
 * Computes the weight of a relation, 0..1: the weight of its type times the rarity of the entity to which it leads,
 * since a rare entity says more about the memories that mention it. Rarity is 1 for an entity that a single memory
 * mentions and falls with the logarithm of the mentions: 0.5 for 100 of 10,000 memories.
 */
function weightOf({ relation, mentions, memories }: Pick<RelatedEntity, 'relation' | 'mentions' | 'memories'>): number {
  const rarity = 1 - Math.log(Math.max(1, mentions)) / Math.log(Math.max(2, memories) + 1);
  return (RELATION_WEIGHTS[relation] ?? RELATION_WEIGHT) * rarity;
}
