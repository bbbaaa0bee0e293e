/** Words of the list of memories, of names and of the graph. */
import { many } from './many.ts';

export const browse = {
  title: 'Memories',
  about: 'Everything that is stored, the newest first.',
  emptyTitle: 'Nothing is stored yet',
  empty: 'Add the first memory here, drop a document, or let your agent add them: POST /memory/add.',
  nothingTitle: 'No memory matches',
  nothing: 'Take a filter away to see more.',
  clear: 'Clear filters',
  add: 'Add a memory',
  added: 'Stored. Its sectors and links follow in a moment.',
  duplicate: 'This text was there already: it was reinforced.',
  selected: (number: number) => `${many(number, 'memory', 'memories')} selected`,
  select: 'Select',
  selectAll: 'Select what is loaded',
  selectNone: 'Select none',
  tag: 'Tag',
  tagTitle: (number: number) => `Add tags to ${many(number, 'memory', 'memories')}`,
  archiveTitle: (number: number) => `Archive ${many(number, 'memory', 'memories')}?`,
  archiveAbout: 'Questions leave archived memories out. They can be brought back.',
  forgetTitle: (number: number) => `Forget ${many(number, 'memory', 'memories')} for good?`,
  done: (number: number) => `Done: ${many(number, 'memory', 'memories')}.`,
  partly: (done: number, failed: number) => `${done} done, ${failed} refused.`,
  loaded: (number: number) => `${many(number, 'memory', 'memories')} loaded`,
  all: 'all there are',
  list: 'List of memories',
  order: 'Order',
  orders: { id: 'newest first', event_time: 'latest event first' },
  from: 'Added from',
  to: 'Added until',
  externalId: 'External id',
  names: 'Kept under',
  nameKinds: { users: 'Users', sessions: 'Sessions', tags: 'Tags', types: 'Types', entities: 'Names' },
  noNames: {
    users: 'No user yet.',
    sessions: 'Choose a user to see sessions.',
    tags: 'No tag yet.',
    types: 'No type yet.',
    entities: 'No names were found yet.',
  },
} as const;

export const name = {
  gone: 'No memory mentions this name.',
  mentions: (number: number) => `in ${many(number, 'memory', 'memories')}`,
  relations: 'Relations',
  noRelations: 'No memory states a relation of this name to another.',
} as const;

export const graph = {
  title: 'Graph',
  about: 'What a user’s memories are about and how they hang together. Larger means more salient.',
  size: 'Most nodes',
  emptyTitle: 'There is nothing to draw yet',
  empty: 'Add memories under Memories, or choose another user.',
  names: '■ name',
  counts: (memories: number, names: number) => `${many(memories, 'memory', 'memories')}, ${many(names, 'name')}`,
  truncated: 'not all of them',
  label: 'Map of memories and names. Arrow keys move it, plus and minus zoom. The list below has the most salient.',
  until: (day: string) => `What had happened by ${day}`,
  most: 'Most salient',
} as const;
