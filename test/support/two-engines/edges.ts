/** Requests with the values at which two databases differ most: conditions on metadata, labels, beginnings of names. */
import type { Step } from './programs.ts';
import { EDGE_VALUES, EDGES } from './vocabulary.ts';

const ORDERS = ['$gt', '$gte', '$lt', '$lte'];
/** PostgreSQL cannot hold U+0000, and sorts what stands for it behind other characters (docs/internals/postgres.md). */
const holdsZero = (value: unknown) => JSON.stringify(value).includes('\\u0000');

/** Stores each value in the metadata of a memory and in an item, and asks for it with each operator. */
export function edgesOfValues(): Step[] {
  const keyOf = (value: unknown) => (holdsZero(value) ? 'zero' : 'v');
  const stored = EDGE_VALUES.flatMap((value, no): Step[] => [
    { call: 'addMemory', body: { content: `Ship ${no} in the harbour`, metadata: { [keyOf(value)]: value } } },
    { call: 'putItem', body: { key: `k${no}`, namespace: 'a', value: { [keyOf(value)]: value } } },
  ]);
  const asked = EDGE_VALUES.flatMap((value): Step[] => {
    const ordered = holdsZero(value) ? [] : ORDERS;
    const conditions = [
      ...[...ordered, '$eq', '$ne'].map((operator) => ({ [operator]: value })),
      ...['$in', '$nin'].map((operator) => ({ [operator]: [value, 'absent'] })),
    ];
    return [
      ...conditions.map((condition) => page({ metadata: { [keyOf(value)]: condition } })),
      { call: 'listItems', body: { namespace: 'a', value: { [keyOf(value)]: value } } },
    ];
  });
  const exists = [true, false].map((is) => page({ metadata: { v: { $exists: is } } }));
  return [...stored, ...asked, ...exists];
}

/** Gives each text to a memory as each kind of label, and asks for what has it, and for names that begin like it. */
export function edgesOfLabels(): Step[] {
  const stored = EDGES.flatMap((edge, no): Step[] => [
    {
      call: 'addMemory',
      body: {
        ...{ content: `Boat ${no} in the harbour`, user_id: edge, session_id: edge, type: edge, external_id: edge },
        ...{ tags: [edge, 't'], files: [edge], entities: [edge], title: edge, metadata: { [edge]: no } },
      },
    },
    { call: 'putItem', body: { key: edge, namespace: 'b', value: { no } } },
    { call: 'putItem', body: { key: 'k', namespace: edge, value: { no } } },
  ]);
  const asked = EDGES.flatMap((edge): Step[] => {
    const lists = ['listUsers', 'listTypes', 'listTags', 'listNamespaces'];
    return [
      page({ tags: [edge] }),
      page({ types: [edge], files: [edge] }),
      page({ sessions: [edge], external_ids: [edge], users: [edge] }),
      page({ namespace: edge }),
      page({ metadata: { [edge]: { $exists: true } } }),
      ...lists.map((call) => ({ call, query: { prefix: edge } })),
      { call: 'listSessions', query: { user_id: edge, prefix: edge.slice(0, 1) } },
      { call: 'listEntities', query: { q: edge } },
      { call: 'queryMemories', body: { query: edge, reinforce: false, min_score: 0 } },
    ];
  });
  return [...stored, ...asked];
}

/** Asks for a page of all memories that pass a filter. */
function page(filters: object): Step {
  return { call: 'pageMemories', body: { limit: 100, filters } };
}
