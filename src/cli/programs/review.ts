import { type Command, Option } from 'commander';
import type { FadingOptions } from '../commands/fading.ts';
import type { PairOptions } from '../commands/pairs.ts';
import { NEAR_DUPLICATE_COSINE } from '../../engine/for-options.ts';
import { fraction, integer, overHttp, parseDay, parseRates } from '../options.ts';

/**
 * Adds the commands that list memories for a person to review: contradictions, near duplicates, and memories that fade.
 */
export function addReviewCommands(program: Command): void {
  overHttp(program, 'contradictions')
    .description('list pairs of memories that are proposed to contradict each other, the latest first')
    .option('--user <id>', 'only memories of this user')
    .option('--limit <count>', 'most pairs to list', integer(1, 200), 50)
    .option('--json', 'print the reply of the server')
    .action(async (options: PairOptions) => (await import('../commands/pairs.ts')).listContradictions(options));
  overHttp(program, 'duplicates')
    .description('list pairs of memories that say nearly the same, the most similar first')
    .option('--user <id>', 'only memories of this user')
    .option(
      '--min-similarity <cosine>',
      `similarity from which a pair is listed (default: ${NEAR_DUPLICATE_COSINE})`,
      fraction,
    )
    .option('--limit <count>', 'most pairs to list', integer(1, 200), 50)
    .option('--json', 'print the reply of the server')
    .action(async (options: PairOptions) => (await import('../commands/pairs.ts')).listNearDuplicates(options));
  overHttp(program, 'fading')
    .description('show what will be archived by a day if nobody recalls it; needs an admin key, changes nothing')
    .addOption(
      new Option('--by <date>', 'a future day, such as 2030-01-31, or a number of days')
        .argParser(parseDay)
        .default(parseDay('30d'), '30d'),
    )
    .option(
      '--lambda <rates>',
      'under other rates of decay per day: 0.01 for all sectors, or episodic=0.03,semantic=0.01',
      parseRates,
    )
    .option('--below <salience>', 'as if OM_ARCHIVE_BELOW were this; 0 archives nothing', fraction)
    .option('--json', 'print the reply of the server')
    .action(async (options: FadingOptions) => (await import('../commands/fading.ts')).fading(options));
}
