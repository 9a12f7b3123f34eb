import {
  described,
  list,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

const bytes = (words: string) => described(Type.Integer(), words)

const owner = named(
  'DockerOwner',
  object({
    type: described(
      oneOf(['application', 'database', 'project']),
      'What it belongs to: an application or a database, or else to a project as a whole, as its build engine and its networks do.'
    ),
    id: described(Type.String(), 'The id of that.'),
    name: described(Type.String(), 'What that is called now; empty when it is gone.'),
    project_id: described(Type.String(), 'The project that it lies in.'),
    deployment_id: described(
      nullable(uuid()),
      'The deployment that it was made for; null for what was made for none.'
    )
  }),
  { description: 'What a thing on the engine belongs to: verified by a signature, whatever its labels say.' }
)
export type OwnerAnswer = Static<typeof owner>

const managed = described(
  Type.Boolean(),
  'Whether this installation has made it, for an owner or for itself; false for what others have made.'
)
const ownerField = described(
  nullable(owner),
  'What it belongs to; null for what the platform has for itself, and for what is foreign.'
)
const createdAt = described(timestamp(), 'When it was made.')

export const containerAnswer = named(
  'DockerContainer',
  object({
    id: described(Type.String(), 'The id that the engine has given it.'),
    name: described(Type.String(), 'Its name on the engine.'),
    image: described(
      Type.String(),
      'The image that it was made from, as it was named then; its id where it had no name.'
    ),
    status: described(
      Type.String(),
      "The engine's state: `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`."
    ),
    ports: described(
      Type.Record(Type.String(), Type.String()),
      "By a port of the engine's machine, the port of the container that it leads to: `8080` or `127.0.0.1:8080` to `80/tcp`. Those of UDP are `53/udp`. Up to 200."
    ),
    managed,
    owner: ownerField,
    created_at: createdAt
  }),
  {
    description:
      'A container on the engine, whoever made it. Neither environment nor command nor labels are told.'
  }
)
export type ContainerAnswer = Static<typeof containerAnswer>

export const imageAnswer = named(
  'DockerImage',
  object({
    id: described(Type.String(), 'The id that the engine has given it.'),
    repo_tags: described(
      list(Type.String()),
      'Its names, with tags; empty for one without a name. Up to 200.'
    ),
    size: bytes('Bytes of all of its layers, with those that other images have too.'),
    shared_size: bytes(
      'Bytes of layers that other images have too; -1 while the engine has not measured its disk since the image was made.'
    ),
    containers: described(Type.Integer(), 'How many containers were made from it, stopped ones too.'),
    dangling: described(Type.Boolean(), 'Whether neither a name nor a digest leads to it.'),
    managed: described(
      Type.Boolean(),
      'Whether this installation has built it, or has fetched it for an application; false for what others have put there.'
    ),
    owner: ownerField,
    created_at: createdAt
  }),
  { description: 'An image on the engine that has a name, or that no other one continues.' }
)
export type ImageAnswer = Static<typeof imageAnswer>

const networkMember = named(
  'DockerNetworkContainer',
  object({
    id: described(Type.String(), 'The id of the container.'),
    name: described(Type.String(), 'Its name on the engine.'),
    ipv4_address: described(
      Type.String(),
      'Its address in the network, `10.201.0.3/26`; empty where it has none.'
    )
  }),
  { description: 'A container that is connected to a network now.' }
)
export type NetworkMember = Static<typeof networkMember>

export const networkAnswer = named(
  'DockerNetwork',
  object({
    id: described(Type.String(), 'The id that the engine has given it.'),
    name: described(Type.String(), 'Its name on the engine.'),
    driver: described(Type.String(), 'What makes it, in the words of the engine: `bridge`, `host`, `null`.'),
    scope: described(Type.String(), 'How far it reaches: `local` for this machine alone.'),
    internal: described(Type.Boolean(), 'Whether its containers reach nothing outside of it.'),
    managed,
    owner: ownerField,
    containers: described(list(networkMember), 'The containers that are connected to it now. Up to 500.'),
    container_count: described(Type.Integer(), 'How many they are.'),
    created_at: createdAt
  }),
  { description: 'A network on the engine.' }
)
export type NetworkAnswer = Static<typeof networkAnswer>

export const volumeAnswer = named(
  'DockerVolume',
  object({
    name: described(Type.String(), 'Its name on the engine.'),
    driver: described(Type.String(), 'What keeps it: `local` for the disk of the engine.'),
    mountpoint: described(Type.String(), "Where it is, as a path of the engine's machine."),
    scope: described(Type.String(), 'How far it reaches: `local` for this machine alone.'),
    size: bytes(
      'Bytes of its files; -1 while the engine has not measured its disk since the volume was made, and for one that it cannot measure.'
    ),
    ref_count: described(Type.Integer(), 'How many containers have it mounted, stopped ones too.'),
    managed,
    kind: described(
      oneOf(['data', 'cache', '']),
      'What it holds: `data`, or a `cache` that builds fill again; empty for a foreign one.'
    ),
    owner: ownerField,
    created_at: described(
      timestamp(),
      'When it was made; the beginning of 1970 where its driver does not tell.'
    )
  }),
  { description: 'A volume on the engine. Options of its driver, which may hold passwords, are not told.' }
)
export type VolumeAnswer = Static<typeof volumeAnswer>

const usageEntry = named(
  'DiskUsageEntry',
  object({
    count: described(Type.Integer(), 'How many there are.'),
    size: bytes('Bytes that they take together; what several have counts once.'),
    reclaimable: bytes('Bytes of that which come back when those are removed that nothing uses.')
  }),
  { description: 'What all things of one kind take of the disk.' }
)

const usage = named(
  'DockerDiskUsage',
  object({
    images: described(usageEntry, 'Images. Reclaimable is what no container was made from.'),
    containers: described(
      usageEntry,
      'What containers have written into their own file systems. Reclaimable is that of those that do not run.'
    ),
    volumes: described(usageEntry, 'Volumes. Reclaimable are those that no container has mounted.'),
    build_cache: described(
      usageEntry,
      "The cache of the engine's own BuildKit. Build engines of projects keep theirs in volumes."
    ),
    layers_size: bytes('Bytes of all layers of all images.'),
    measured_at: described(
      timestamp(),
      'When the engine was asked. Figures of more than a minute are made anew in the background when somebody asks; the longer that takes, the older they become.'
    )
  }),
  { description: "What is on the engine's disk, by its own account." }
)
export type DiskUsage = Static<typeof usage>

const info = named(
  'DockerSystemInfo',
  object({
    server_version: described(Type.String(), 'The version of the engine.'),
    operating_system: described(Type.String(), 'What its machine runs: `Debian GNU/Linux 12 (bookworm)`.'),
    os_type: described(Type.String(), 'The kind of that: `linux`.'),
    architecture: described(Type.String(), 'The processor of its machine: `x86_64`.'),
    kernel_version: described(Type.String(), 'The kernel of its machine.'),
    ncpu: described(Type.Integer(), 'The cores of its machine.'),
    mem_total: bytes('Bytes of memory of its machine.'),
    storage_driver: described(Type.String(), 'How it keeps images and containers: `overlay2`.'),
    logging_driver: described(Type.String(), 'Where the output of containers goes: `json-file`.'),
    cgroup_driver: described(Type.String(), 'What makes control groups: `cgroupfs`, `systemd`.'),
    docker_root_dir: described(Type.String(), 'Where it keeps everything, as a path of its machine.'),
    name: described(Type.String(), 'What its machine is called.'),
    containers: described(Type.Integer(), 'How many containers it has, by its own count.'),
    containers_running: described(Type.Integer(), 'How many of them run.'),
    containers_paused: described(Type.Integer(), 'How many are paused.'),
    containers_stopped: described(Type.Integer(), 'How many do not run.'),
    images: described(Type.Integer(), 'How many images it has, those that only others continue too.')
  }),
  { description: 'What the engine says of itself and its machine.' }
)
export type SystemInfo = Static<typeof info>

const counts = named(
  'DockerCounts',
  object({
    containers_running: described(Type.Integer(), 'Containers that run.'),
    containers_total: described(
      Type.Integer(),
      'All containers: as many as `GET /api/docker/containers` lists.'
    ),
    images: described(Type.Integer(), 'Images: as many as `GET /api/docker/images` lists.'),
    volumes: described(Type.Integer(), 'Volumes: as many as `GET /api/docker/volumes` lists.')
  }),
  { description: 'How many things there are on the engine.' }
)

export const overview = named(
  'DockerOverview',
  object({
    info: described(nullable(info), 'What the engine is; null where it does not say.'),
    disk_usage: described(
      nullable(usage),
      'What is on its disk; null while the first measurement since the start of the platform is under way, which takes minutes on a large disk, or has failed.'
    ),
    counts: described(counts, 'How many things there are on it.')
  }),
  { description: 'The engine at a glance.' }
)
export type Overview = Static<typeof overview>
