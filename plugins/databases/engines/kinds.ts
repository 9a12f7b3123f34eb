import type { DatabaseEngineKind } from '../api.js'

/** The engines of this plugin, by the type that users choose. What each of them does is loaded when one of it is worked on. */
export const builtInEngines: Readonly<Record<string, DatabaseEngineKind>> = {
  postgres: {
    label: 'PostgreSQL',
    defaults: { version: '16', port: 5432 },
    image: version => `postgres:${version}`,
    load: async () => (await import('./postgres.js')).engine
  },
  mysql: {
    label: 'MySQL',
    defaults: { version: '8', port: 3306 },
    image: version => `mysql:${version}`,
    load: async () => (await import('./mysql.js')).engine
  },
  mariadb: {
    label: 'MariaDB',
    defaults: { version: '11', port: 3306 },
    image: version => `mariadb:${version}`,
    load: async () => (await import('./mariadb.js')).engine
  },
  redis: {
    label: 'Redis',
    defaults: { version: '7', port: 6379 },
    image: version => `redis:${version}`,
    load: async () => (await import('./redis.js')).engine
  },
  mongo: {
    label: 'MongoDB',
    defaults: { version: '7', port: 27_017 },
    image: version => `mongo:${version}`,
    load: async () => (await import('./mongo.js')).engine
  },
  other: {
    label: 'Other',
    defaults: null,
    image: () => '',
    load: async () => (await import('./other.js')).engine
  }
}
