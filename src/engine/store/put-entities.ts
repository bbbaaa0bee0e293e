import type { EntityGraph } from '../entities/extract.ts';
import { eraseEntities, hasMentions } from './entities.ts';
import type { Store } from './open-store.ts';

/** The entities and relations that a memory is to have, with the number of its user. */
export interface MemoryGraphDraft {
  readonly memoryNo: number;
  readonly userNo: number;
  /** `from` and `to` of a relation are names in `entities`. Empty lists remove what the memory has. */
  readonly graph: EntityGraph;
}

/**
 * Replaces the entities and relations of memories. If a memory is listed twice, the later entry counts. Call inside a
 * write.
 */
export function putEntities(store: Store, drafts: readonly MemoryGraphDraft[]): void {
  for (const { memoryNo } of drafts) if (hasMentions(store, memoryNo)) eraseEntities(store, [memoryNo]);
  const latest = [...new Map(drafts.map((draft) => [draft.memoryNo, draft])).values()];
  const filled = latest.filter(({ graph }) => graph.entities.length > 0);
  if (store.ahead !== null) putEntitiesByName(store, filled);
  else for (const draft of filled) putEntitiesByNumber(store, draft);
}

function putEntitiesByNumber(store: Store, { memoryNo, userNo, graph }: MemoryGraphDraft): void {
  const count = store.prepare(`${COUNT_ENTITY} RETURNING entity_no`).pluck();
  const mention = store.prepare('INSERT INTO entity_mentions (entity_no, memory, label, type) VALUES (?, ?, ?, ?)');
  const numbers = new Map<string, number>();
  for (const { name, label, type } of graph.entities) {
    const entityNo = count.get(userNo, name, label, type, 1) as number;
    mention.run(entityNo, memoryNo, label, type);
    numbers.set(name, entityNo);
  }
  if (graph.relations.length === 0) return;
  const relations = graph.relations.map(({ from, to, type }) => [numbers.get(from), numbers.get(to), type]);
  store
    .prepare(
      `INSERT INTO entity_relations (src, dst, relation, memory)
       SELECT CAST(value ->> 0 AS INTEGER), CAST(value ->> 1 AS INTEGER), value ->> 2, ? FROM json_each(?)`,
    )
    .run(memoryNo, JSON.stringify(relations));
}

const COUNT_ENTITY = `INSERT INTO entities (user_no, name, label, type, mentions) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (name, user_no) DO UPDATE SET mentions = mentions + excluded.mentions,
    type = iif(type = 'other', excluded.type, type)`;

/**
 * Does the same as `putEntitiesByNumber`, for many memories and by statements that find an entity by its name: none has
 * to wait for the number of a new entity, and those of one kind follow each other, so that they are sent as one.
 */
function putEntitiesByName(store: Store, drafts: readonly MemoryGraphDraft[]): void {
  const count = store.prepare(COUNT_ENTITY);
  for (const { userNo, name, label, type, mentions } of countEntities(drafts))
    count.run(userNo, name, label, type, mentions);
  const mention = store.prepare(
    `INSERT INTO entity_mentions (entity_no, memory, label, type)
     SELECT entity_no, ?, ?, ? FROM entities WHERE name = ? AND user_no = ?`,
  );
  for (const { memoryNo, userNo, graph } of drafts)
    for (const { name, label, type } of graph.entities) mention.run(memoryNo, label, type, name, userNo);
  const relate = store.prepare(
    `INSERT INTO entity_relations (src, dst, relation, memory)
     SELECT a.entity_no, b.entity_no, ?, ? FROM entities a CROSS JOIN entities b
     WHERE a.name = ? AND a.user_no = ? AND b.name = ? AND b.user_no = ?`,
  );
  for (const { memoryNo, userNo, graph } of drafts)
    for (const { from, to, type } of graph.relations) relate.run(type, memoryNo, from, userNo, to, userNo);
}

/**
 * Counts how many of the memories mention each entity of a user. Its spelling is the first one, and its type the first
 * that is not `other`.
 */
function countEntities(drafts: readonly MemoryGraphDraft[]) {
  const counted = new Map<string, { userNo: number; name: string; label: string; type: string; mentions: number }>();
  for (const { userNo, graph } of drafts) {
    for (const { name, label, type } of graph.entities) {
      const key = `${userNo} ${name}`;
      const known = counted.get(key);
      if (known === undefined) counted.set(key, { userNo, name, label, type, mentions: 1 });
      else {
        known.mentions += 1;
        if (known.type === 'other') known.type = type;
      }
    }
  }
  return counted.values();
}
