import { z } from 'zod';
import { duration, integer } from './setting-kinds.ts';

/** The schema of the settings of scheduled backups. */
export const BACKUP_SETTINGS = {
  OM_BACKUP_EVERY: duration(
    5 * 60_000,
    365 * 86_400_000,
    'expected hours, or a duration such as 30m, 6h or 1d',
  ).describe(
    'How often each tenant is backed up into OM_BACKUP_FOLDER: hours, or a duration such as 30m, 6h or 1d, of 5 ' +
      'minutes to 365 days; empty for no scheduled backups.',
  ),
  OM_BACKUP_FOLDER: z
    .string()
    .optional()
    .describe(
      'Folder for scheduled backups, which Cairn makes and which belongs to this data folder alone; best on another ' +
        'disk. Old backups are removed from it.',
    ),
  OM_BACKUP_KEEP: integer(7, 1, 10_000).describe('Most scheduled backups that are kept of each tenant.'),
};
