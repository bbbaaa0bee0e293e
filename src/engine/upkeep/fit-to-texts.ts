import { calibrateScores, type CalibrateContext } from './calibrate-scores.ts';
import { fitLatentSpace } from './fit-latent-space.ts';

/**
 * Adapts a file's data to its texts where that is due: measures the cosine of unrelated texts in each vector space, and
 * fits the latent space (a model of word meanings) to long texts.
 * @param pause waits between two rounds of the work, so that the thread does other work
 */
export async function fitToTexts(context: CalibrateContext, pause: () => Promise<void>): Promise<void> {
  calibrateScores(context);
  await fitLatentSpace({ ...context, pause });
}
