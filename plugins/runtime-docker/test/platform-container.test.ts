import { test } from 'tap'
import { mountedContainerId } from '../platform-container.js'

const own = 'a'.repeat(64)
const other = 'b'.repeat(64)
const shm = `201 30 0:50 / /var/lib/docker/containers/${other}/mounts/shm rw,nosuid - tmpfs shm rw`
const othersFile = `202 30 8:1 /var/lib/docker/containers/${other}/hostname /srv/x/etc/hostname rw - ext4 /dev/sda1 rw`
const ownFile = (id: string): string =>
  `1203 1190 8:1 /var/lib/docker/containers/${id}/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw`

void test('the container of the platform is told by where its own host name comes from', t => {
  t.equal(mountedContainerId([shm, othersFile, ownFile(own), ''].join('\n')), own)
  t.end()
})

void test('containers of an engine that runs beside the platform are none of its own', t => {
  t.equal(mountedContainerId([shm, othersFile].join('\n')), undefined)
  t.equal(mountedContainerId(ownFile('short')), undefined)
  t.equal(mountedContainerId('1 2 8:1 /var/lib/other/hostname /etc/hostname rw - ext4 x rw'), undefined)
  t.equal(mountedContainerId(''), undefined)
  t.end()
})
