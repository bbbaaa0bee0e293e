import fs from 'node:fs';
import { Gauge, Histogram, type Registry } from 'prom-client';
import type { MetricSources } from './metric-sources.ts';
import { SUM_AND_COUNT, censusGauge, shownOnceSet } from './series.ts';

/** Makes the metrics of the tenants' files and of the census that counts them. */
export function createFileMetrics(registers: Registry[], sources: MetricSources) {
  return {
    tenants: censusGauge({
      name: 'cairn_tenants',
      help: 'Tenants, the default one included.',
      registers,
      sources,
      read: ({ tenants }) => tenants,
    }),
    unreadableTenants: censusGauge({
      name: 'cairn_tenants_unreadable',
      help: 'Tenants whose file could not be read at the last count.',
      registers,
      sources,
      read: ({ unreadable }) => unreadable,
    }),
    censusDurations: new Histogram({
      name: 'cairn_census_duration_seconds',
      help:
        'Time of one count of what the files of all tenants contain, from which other gauges get their values; it ' +
        'runs in slices of some milliseconds, in at most a twentieth of the time.',
      buckets: SUM_AND_COUNT,
      registers,
    }),
    databaseBytes: censusGauge({
      name: 'cairn_database_bytes',
      help: "Size of all tenants' files, without their write-ahead logs.",
      registers,
      sources,
      read: ({ databaseBytes }) => databaseBytes,
    }),
    walBytes: censusGauge({
      name: 'cairn_wal_bytes',
      help: "Size of all tenants' write-ahead logs.",
      registers,
      sources,
      read: ({ walBytes }) => walBytes,
    }),
    largestWalBytes: censusGauge({
      name: 'cairn_wal_largest_bytes',
      help:
        'Size of the largest write-ahead log of a tenant; it grows without end if a reader never ends its read, or ' +
        'if the disk is full.',
      registers,
      sources,
      read: ({ largestWalBytes }) => largestWalBytes,
    }),
  };
}

/** Makes the metrics of the disk that holds the data. */
export function createDiskMetrics(registers: Registry[], sources: MetricSources) {
  return {
    diskFree: shownOnceSet(
      new Gauge({
        name: 'cairn_disk_free_bytes',
        help: 'Free bytes on the disk that holds the data.',
        registers,
        async collect() {
          if (sources.dataFolder === undefined) return;
          const { bavail, bsize } = await fs.promises.statfs(sources.dataFolder);
          this.set(bavail * bsize);
        },
      }),
    ),
    diskSize: shownOnceSet(
      new Gauge({
        name: 'cairn_disk_size_bytes',
        help: 'Size of the disk that holds the data.',
        registers,
        async collect() {
          if (sources.dataFolder === undefined) return;
          const { blocks, bsize } = await fs.promises.statfs(sources.dataFolder);
          this.set(blocks * bsize);
        },
      }),
    ),
  };
}
