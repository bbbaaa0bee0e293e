/** Texts of the list of changes between two times. */
import { many } from './many.ts';

export const changes = {
  from: 'From',
  to: 'Until',
  axis: 'Compares',
  axes: { recorded: 'recorded', valid: 'valid' },
  topic: 'Topic',
  none: 'Nothing changed in this time',
  noneAbout: 'Choose an earlier start, another user or the other comparison.',
  lists: {
    added: 'Added',
    changed: 'Changed',
    superseded: 'Superseded',
    contradicted: 'Contradicted',
    ended: 'Ended',
    archived: 'Archived',
    restored: 'Restored',
    faded: 'Faded',
  },
  before: 'Before:',
  now: 'Now:',
  successorGone: 'Its successor was erased.',
  against: 'Against:',
  right: 'said to be right',
  salience: (from: string, to: string) => `salience ${from} → ${to}`,
  some: (shown: number, all: number) => `The first ${shown} of ${all}.`,
  erased: (deleted: number, expired: number) =>
    `${many(deleted, 'memory was', 'memories were')} erased and ${many(expired, 'memory', 'memories')} expired. ` +
    'Nothing else is kept of them.',
  degraded: 'Not all memories were looked at, since one request may do only so much. Choose a shorter time.',
} as const;
