/** Texts of the page Decay. */
import { many } from './many.ts';

export const decay = {
  title: 'Decay',
  about: 'How present memories will be at a date, if nobody recalls them until then. Looking changes nothing.',
  at: 'At the date',
  lambda: 'λ of all sectors, a day',
  lambdaOf: (sector: string) => `λ of ${sector}`,
  archiveBelow: 'Archive below',
  asSet: 'as it is set',
  emptyTitle: 'There is nothing that could fade',
  empty: 'Add memories under Memories, or let your agent add them. Then see here how they fade.',
  counts: (memories: number) => many(memories, 'memory', 'memories'),
  average: (before: string, after: string) => `salience ${before} today, ${after} then`,
  histogram: (sector: string, before: string, after: string) =>
    `Memories of the sector ${sector} by tenth of salience: today ${before}; then ${after}`,
  legend: 'Outlined: today. Filled: at the date. From left to right the tenths of salience, 0 to 1.',
  archived: (memories: number) => `${many(memories, 'memory would be', 'memories would be')} archived`,
  archivedNone: 'None would be archived.',
  archiveHint: 'Memories are archived once their salience is below “Archive below”; 0 archives none.',
  lowest: 'Archived first',
  falls: 'Fade most',
  columns: ['Memory', 'Sector', '>Today', '>Then'],
  cut: 'There are too many memories for one look: the counts are of those that were looked at.',
  toSet: 'To set it',
  toSetAbout:
    'Rates are settings of the service: put these lines into its environment, and start it again. Memories keep what ' +
    'they have lost so far.',
  toSetSectors: 'A rate for a single sector can be tried here; the service has one for all, or its own five.',
  restore: 'Restored memories come back under Memories, with the status “archived”.',
} as const;
