/** The command line. The code of each command is loaded when the command is called, so that help is printed at once. */
import { Command, CommanderError } from 'commander';
import { VERSION } from '../engine/for-options.ts';
import { addAccessCommands } from './programs/access.ts';
import { addFileCommands } from './programs/files.ts';
import { addMemoryCommands } from './programs/memories.ts';
import { addRunCommands } from './programs/run.ts';
import { addWorkCommands } from './programs/work.ts';
import { reportError } from './report-error.ts';

const program = new Command('cairn')
  .description('A self-hosted memory for AI agents. Settings come from the environment and .env (see .env.example).')
  .version(VERSION)
  .exitOverride()
  .configureHelp({ showGlobalOptions: false })
  .showHelpAfterError('(cairn --help shows the commands)');

addRunCommands(program);
addMemoryCommands(program);
addWorkCommands(program);
addAccessCommands(program);
addFileCommands(program);

// The reader of the output may close it early, as `head` does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  // Commander has already printed the error or the help.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exit(reportError(error));
}
