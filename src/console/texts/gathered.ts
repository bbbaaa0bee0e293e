/** Texts of consolidated memories. */
import { many } from './many.ts';

export const gathered = {
  about:
    'Memories that say nearly the same, or follow one topic, gathered into one that points to them. The sources ' +
    'stay; in answers that have both they give way.',
  look: 'Look what could be gathered',
  emptyTitle: 'Nothing was gathered yet',
  empty:
    '“Look what could be gathered” shows it without changing anything. With OM_CONSOLIDATION=on Cairn gathers by ' +
    'itself.',
  emptyReader: 'With OM_CONSOLIDATION=on, or once somebody asks for it, what was gathered appears here.',
  proposed: 'This would be gathered',
  again: 'Also what was undone before',
  none: 'Nothing says the same often enough',
  noneAbout: 'Two to eight memories of one user with equal tags and metadata are gathered, once they are nearly alike.',
  from: (sources: number) => `from ${many(sources, 'memory', 'memories')}`,
  cut: 'There is more to gather than is shown.',
  gather: 'Gather them',
  gathering: 'They are being gathered …',
  done: 'Gathered. Each can be undone.',
  goesOn: (state: string) => `The run goes on: ${state}. Look under “Work and cost”.`,
  methods: { sentences: 'sentences of its sources', model: 'written by the language model' },
  sources: (number: number) => `Its ${many(number, 'source')}`,
  sourceGone: 'This source is not here any more.',
  undone: 'Undone, or erased with a source. It is not gathered again unless somebody asks for it.',
  undo: 'Undo',
  undoRun: 'Undo its whole run',
  onlyRun: 'Show its run alone',
  allRuns: 'Show all runs',
  undoTitle: 'Undo this consolidation?',
  undoRunTitle: 'Undo all that this run gathered?',
  undoAbout: 'What was gathered is erased. The sources are as they were, and rank as before.',
  undoneNow: (number: number) => `Undone: ${many(number, 'gathered memory', 'gathered memories')} erased.`,
} as const;
