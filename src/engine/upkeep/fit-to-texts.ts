import { calibrateScores, type CalibrateContext } from './calibrate-scores.ts';
import { fitLatentSpace } from './fit-latent-space.ts';

/**
 * Makes the two fits of a file to its texts if they are due: how near unrelated texts lie in each vector space, and the
 * latent space of long texts.
 * @param pause waits between two rounds of a fit, so that the thread does other work
 */
export async function fitToTexts(context: CalibrateContext, pause: () => Promise<void>): Promise<void> {
  calibrateScores(context);
  await fitLatentSpace({ ...context, pause });
}
