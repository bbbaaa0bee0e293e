import { Argument, type Command, Option } from 'commander';
import { collect, parseConcurrency, parseQueues } from '../options.ts';

/** Adds the commands that run the service or a part of it, for good, for a demo, or for an MCP client. */
export function addRunCommands(program: Command): void {
  program.commandsGroup('Run');
  program
    .command('serve')
    .description('serve the API and do the background work, in one process')
    .action(async () => (await import('../../main.ts')).serve(process.env));
  program
    .command('api')
    .description('serve the API only')
    .action(async () => (await import('../../api/main.ts')).serveApi(process.env));
  program
    .command('worker')
    .description('do the background work beside an API process; with REDIS_URL or OM_DATABASE_URL any number of them')
    .addOption(
      new Option('--queues <names>', 'with queues: take jobs of these only, separated by commas').argParser(
        parseQueues,
      ),
    )
    .addOption(
      new Option('--concurrency <n>', 'with queues: number of encode jobs at the same time').argParser(
        parseConcurrency,
      ),
    )
    .action(async (options: object) => (await import('../../workers/main.ts')).runWorkerProcess(process.env, options));
  program
    .command('demo')
    .description('store documents in a temporary store, ask three questions, and explain each answer')
    .addArgument(new Argument('[folder]', "a folder of Markdown files; Cairn's own documents by default"))
    .option('--ask <question>', 'ask this question instead; may be repeated', collect)
    .action(async (...args) => (await import('../commands/demo.ts')).demo(...(args as [string?, object?])));
  program
    .command('mcp')
    .description('speak the Model Context Protocol on standard input and output, for AI clients')
    .option('--user <id>', 'reach only the memories of this user')
    .option('--allow-delete', 'offer the tool forget, too')
    .option('--feedback', 'offer the tool rate_recall, too')
    .option('--url <url>', 'the server (default: CAIRN_URL; without it one on this machine, started if none answers)')
    .option('--key <key>', 'its key (default: CAIRN_API_KEY or OM_API_KEY)')
    .action(async (options: object) => (await import('../commands/mcp.ts')).mcp(options));
  program.command('warm-up', { hidden: true }).action(async () => (await import('../warm-up.ts')).warmUp());
}
