import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { s3Bucket, s3Keys, startS3Server } from '../../../lab/s3-server.js'
import { createDatabase, runIn, startLab, untilRunning } from './lab.js'
import { untilEnded } from './postgres-lab.js'

interface Case {
  readonly body: object
  /** What runs a text in one of its databases. */
  command(credentials: Readonly<Record<string, string>>, database: string, text: string): [string[], object]
  readonly create: readonly string[]
}

const cases: Readonly<Record<string, Case>> = {
  PostgreSQL: {
    body: { type: 'postgres', version: '15' },
    command: ({ user = '', password = '' }, database, text) => [
      ['psql', '-h', '127.0.0.1', '-U', user, '-d', database, '-A', '-t', '-q', '-c', text],
      { PGPASSWORD: password }
    ],
    create: ['create database stock', 'create database third']
  },
  MariaDB: {
    body: { type: 'mariadb', version: '10.11' },
    command: ({ root_password: password = '' }, database, text) => [
      ['mariadb', '--host=127.0.0.1', '--user=root', '--batch', '--skip-column-names', database, '-e', text],
      { MYSQL_PWD: password }
    ],
    create: ['create database stock', 'create database third']
  }
}

for (const [name, { body, command, create }] of Object.entries(cases))
  test(`of a server of ${name} some databases are backed up and restored, and the others stay`, async t => {
    if (!(await requireDatabaseImages(t))) return
    const s3 = await startS3Server(t)
    const lab = await startLab(t)
    const { k, ann, projectId } = lab
    const made = await createDatabase(lab, body)
    const revealed = await ann.get(`${made.path}/credentials/reveal`)
    const sql = async (database: string, text: string) => {
      const [argv, env] = command(revealed.body.credentials, database, text)
      return (await runIn(k, made.id, argv, { ...env })).trim()
    }
    for (const text of create) await sql('shop', text)
    for (const database of ['shop', 'stock', 'third'])
      await sql(database, 'create table kept (n integer); insert into kept values (1)')

    const destination = await ann.post(`/api/projects/${projectId}/backup-destinations`, {
      name: 'Store',
      provider: 'minio',
      endpoint: s3.host,
      bucket: s3Bucket,
      use_ssl: false,
      ...s3Keys
    })
    const config = await ann.post(`${made.path}/backup-configs`, {
      destination_id: destination.body.id,
      schedule: '0 3 * * *',
      databases: ['stock', 'third']
    })
    t.match(config, { status: 201, body: { all_databases: false } })
    t.match(await ann.post(`${made.path}/backup-configs/${config.body.id}/run`), { status: 202 })
    const backup = await untilEnded(ann, made.path, 'backups')
    t.match(backup, { status: 'succeeded', target_database: 'stock,third' }, `${backup.error} ${backup.log}`)
    await untilRunning(ann, made.path)

    await sql('shop', 'insert into kept values (2)')
    await sql('stock', 'insert into kept values (2); create table later (n integer)')
    await sql('shop', 'drop database third')
    t.match(await ann.post(`${made.path}/restore`, { backup_id: backup.id }), { status: 202 })
    const restore = await untilEnded(ann, made.path, 'restores')
    t.match(restore, { status: 'succeeded' }, `${restore.error} ${restore.log}`)
    await untilRunning(ann, made.path)
    t.equal(await sql('shop', 'select count(*) from kept'), '2', 'what was not restored is as it was')
    t.equal(await sql('stock', 'select count(*) from kept'), '1')
    t.equal(await sql('third', 'select count(*) from kept'), '1')
    t.equal(
      await sql('stock', "select count(*) from information_schema.tables where table_name = 'later'"),
      '0',
      'a database that is restored has what the backup has, and no more'
    )
  })
