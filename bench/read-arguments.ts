import { parseArgs, type ParseArgsConfig } from 'node:util';

type Parsed<Options extends NonNullable<ParseArgsConfig['options']>> = ReturnType<
  typeof parseArgs<{ options: Options; allowPositionals: true; strict: true }>
>;

/**
 * Reads the arguments of a script. For `--help` it ends the process with the usage on stdout; for unknown or missing
 * arguments with the usage on stderr and exit code 2.
 * @param isComplete whether the script can run with these arguments
 */
export function readArguments<const Options extends NonNullable<ParseArgsConfig['options']>>(
  usage: string,
  options: Options,
  isComplete: (parsed: Parsed<Options>) => boolean = ({ positionals }) => positionals.length === 0,
): Parsed<Options> {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    console.log(`usage: ${usage}`);
    process.exit(0);
  }
  let problem = '';
  try {
    const parsed = parseArgs({ args, options, allowPositionals: true, strict: true });
    if (isComplete(parsed)) return parsed;
  } catch (error) {
    problem = `${(error as Error).message}\n`;
  }
  console.error(`${problem}usage: ${usage}`);
  process.exit(2);
}
