import { calibrateScores, type CalibrateContext } from './calibrate-scores.ts';
import { fitLatentSpace } from './fit-latent-space.ts';

/**
 * Fits what retrieval takes from all texts of a file, where enough has changed: how near unrelated texts lie, and the
 * latent space of long texts.
 * @param pause waits between two rounds of a fit, so that other work has its turn
 */
export async function fitToTexts(context: CalibrateContext, pause: () => Promise<void>): Promise<void> {
  calibrateScores(context);
  await fitLatentSpace({ ...context, pause });
}
