/** Texts of weights learned from feedback. */
import { many } from './many.ts';

export const learned = {
  about:
    'What was said about answers (used, useless, wrong) teaches how similarity, salience, recency and links should ' +
    'weigh. It is a proposal until somebody accepts it, and one step takes it back.',
  learn: 'Learn from feedback',
  learning: 'It is being learned …',
  none: (reason: string) => `No proposal: ${reason}.`,
  emptyTitle: 'Nothing was learned yet',
  empty:
    'Open a past answer under Ask, and say which of its memories were used and which were useless or wrong. After 40 ' +
    'such answers, “Learn from feedback” proposes weights.',
  states: { proposed: 'proposed', accepted: 'in use', reverted: 'taken back' },
  from: (recalls: number, profile: string) => `from ${many(recalls, 'answer')}, profile ${profile}`,
  weights: 'Weights',
  weightColumns: ['Weight', '>Now', '>Proposed'],
  vectors: 'share of vectors',
  floor: 'floor under scores',
  report: (answers: number) => `Measured on the ${many(answers, 'later answer')}, which it did not learn from`,
  reportColumns: ['Measure', '>Before', '>After'],
  measures: {
    order: 'used above useless, share of pairs',
    wanted: 'used ones above the floor',
    unwanted: 'useless or wrong ones above the floor',
  },
  chance: (share: string) => `In ${share} of 1,000 draws of these answers the order is no better: that may be chance.`,
  accept: 'Accept',
  acceptTitle: 'Use these weights for all questions of the tenant?',
  acceptAbout:
    'They become the defaults of questions that name no weights themselves. Guarded evaluation sets are asked first, ' +
    'and nothing changes if one would fall.',
  accepted: 'The weights are in use.',
  revert: 'Take back',
  revertTitle: 'Give back the weights from before?',
  revertAbout: 'The defaults that the acceptance replaced apply again.',
  reverted: 'The weights from before apply again.',
} as const;
