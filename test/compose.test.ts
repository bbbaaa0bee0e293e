import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly ports?: readonly string[];
  readonly networks?: readonly string[];
  readonly profiles?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly mem_limit?: string;
  readonly security_opt?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const file = fs.readFileSync(path.resolve(import.meta.dirname, '../docker-compose.yml'), 'utf8');
const { services, networks } = parse(file, { merge: true }) as {
  services: Readonly<Record<string, Service>>;
  networks: Readonly<Record<string, { internal?: boolean }>>;
};
const names = Object.keys(services);

describe('docker-compose.yml', () => {
  test.each(names)(
    '%s has a bound on its memory, gains no privileges and is published on this machine only',
    (name) => {
      const service = services[name]!;
      expect(service.mem_limit).toBeDefined();
      expect(service.security_opt).toContain('no-new-privileges:true');
      for (const port of service.ports ?? []) expect(port).toMatch(/^(127\.0\.0\.1|\$\{CAIRN_BIND:-127\.0\.0\.1\}):/);
    },
  );

  test('all services but Redis, whose entrypoint changes its user, run without capabilities', () => {
    expect(names.filter((name) => !services[name]!.cap_drop?.includes('ALL'))).toEqual(['redis']);
  });

  test('Redis is reached by API and workers alone, and takes the password that they give', () => {
    expect(networks['queue']).toEqual({ internal: true });
    expect(services['redis']!.networks).toEqual(['queue']);
    const members = names.filter((name) => services[name]!.networks?.includes('queue'));
    expect(members.sort()).toEqual(['api', 'redis', 'worker']);
    expect(services['redis']!.command!.slice(-2)).toEqual(['--requirepass', '${REDIS_PASSWORD:-}']);
    for (const name of ['api', 'worker']) {
      expect(services[name]!.environment!['REDIS_URL']).toBe(
        '${CAIRN_REDIS_URL-redis://:${REDIS_PASSWORD:-}@redis:6379}',
      );
    }
  });

  test('PostgreSQL and its standby are reached by API and workers alone, and run with their profile only', () => {
    expect(networks['database']).toEqual({ internal: true });
    const members = names.filter((name) => services[name]!.networks?.includes('database'));
    expect(members.sort()).toEqual(['api', 'postgres', 'postgres-standby', 'worker']);
    for (const name of ['postgres', 'postgres-standby']) {
      expect(services[name]!.profiles).toEqual(['postgres']);
      expect(services[name]!.networks).toEqual(['database']);
      for (const client of ['api', 'worker']) {
        const condition = { condition: 'service_healthy', required: false };
        expect(services[client]!.depends_on![name]).toEqual(condition);
      }
    }
  });

  test('Grafana has no known password and shows nothing without one', () => {
    const { environment } = services['grafana']!;
    expect(environment!['GF_SECURITY_ADMIN_PASSWORD']).toBe('${GRAFANA_PASSWORD:-${OM_API_KEY}}');
    expect(environment!['GF_AUTH_ANONYMOUS_ENABLED']).toBe('${GRAFANA_ANONYMOUS:-false}');
  });
});
