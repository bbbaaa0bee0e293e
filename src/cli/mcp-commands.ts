import type { Command } from 'commander';

/** Declares `cairn mcp`, which an AI client starts. */
export function declareMcp(program: Command): void {
  program
    .command('mcp')
    .description('speak the Model Context Protocol on standard input and output, for AI clients')
    .option('--user <id>', 'reach only the memories of this user')
    .option('--allow-delete', 'offer the tool forget, too')
    .option('--url <url>', 'the server (default: CAIRN_URL; without it one on this machine, started if none answers)')
    .option('--key <key>', 'its key (default: CAIRN_API_KEY or OM_API_KEY)')
    .action(async (options: object) => (await import('./commands/mcp.ts')).mcp(options));
}
