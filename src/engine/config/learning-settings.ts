import { z } from 'zod';

/** The schema of the settings of what Cairn learns from its data: which sector (kind of memory) a text belongs to. */
export const LEARNING_SETTINGS = {
  OM_SECTOR_CLASSIFIER: z
    .enum(['learned', 'patterns'])
    .default('learned')
    .describe(
      'What tells the sector of a text: learned is a small model of labelled sentences, which also learns from ' +
        'sectors that are stated; patterns are lists of words. Texts not in Latin letters are always told by patterns.',
    ),
};
