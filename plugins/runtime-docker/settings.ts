import { fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'
import { dockerHostForm } from './engine-address.js'
import { parseBuildHosts } from './host/build-hosts.js'
import { parseHostPorts } from './host/host-ports.js'
import { instanceIdForm } from './instance-id.js'
import { parsePools } from './subnet.js'

const variable = (name: string, description: string) =>
  maybe(fromEnvironment(name, Type.String({ description })))

export const settings = object({
  docker_host: maybe(
    fromEnvironment(
      'DOCKER_HOST',
      Type.String({
        pattern: dockerHostForm.source,
        description: 'Where the Docker Engine listens; the first usual socket that exists unless set'
      }),
      { takes: 'unix:///path/to/docker.sock or tcp://host:port' }
    )
  ),
  docker_tls_verify: variable('DOCKER_TLS_VERIFY', 'TLS to an engine at tcp://, whatever the value'),
  docker_cert_path: variable(
    'DOCKER_CERT_PATH',
    'Folder with ca.pem, cert.pem and key.pem; ~/.docker unless set'
  ),
  xdg_runtime_dir: variable('XDG_RUNTIME_DIR', 'Where the socket of a rootless engine is looked for'),
  subnets: fromEnvironment(
    'BUSBAR_SUBNETS',
    Type.String({ default: '10.201.0.0/16', description: 'Ranges for the networks of projects' }),
    { takes: 'IPv4 ranges of /26 or larger, separated by commas, like 10.201.0.0/16', parse: parsePools }
  ),
  host_ports: fromEnvironment(
    'HOST_PORTS_FOR_CONTAINERS',
    Type.String({
      // DNS, because the engine hands a container's questions on from the container's own address where the machine's
      // name server is one of the machine's own; HTTP and HTTPS, because applications call each other by their public names.
      default: '53,80,443',
      description: "Ports of the engine's machine that containers may reach"
    }),
    {
      takes: 'ports and ranges of ports separated by commas, like 53,80,443,20000-20019, all, or none',
      parse: parseHostPorts
    }
  ),
  build_private_hosts: maybe(
    fromEnvironment(
      'BUILD_PRIVATE_HOSTS',
      Type.String({
        description:
          "Private addresses that builds' containers may reach; allow while the platform listens on loopback only, else deny"
      }),
      {
        takes: 'allow, deny, or addresses and ranges such as 10.0.0.0/8, separated by commas',
        parse: parseBuildHosts
      }
    )
  ),
  max_container_connections: fromEnvironment(
    'MAX_CONTAINER_CONNECTIONS',
    Type.Integer({
      minimum: 16,
      maximum: 9_999_999,
      // The table of a machine holds 65 536 with 2 GiB, 262 144 from 8 GiB.
      default: 4096,
      description: 'TCP connections of 16 neighbouring containers'
    })
  ),
  instance_id: maybe(
    fromEnvironment(
      'BUSBAR_INSTANCE_ID',
      Type.String({
        pattern: instanceIdForm.source,
        description: 'The id of this installation; a file under BUSBAR_DIR unless set'
      }),
      { takes: '8 to 64 letters, digits and hyphens' }
    )
  ),
  own_container: variable('API_CONTAINER_NAME', "The platform's own container; found by itself unless set")
})
export type Settings = Static<typeof settings>

/** What says where the engine is. */
export type EngineSettings = Pick<
  Settings,
  'docker_host' | 'docker_tls_verify' | 'docker_cert_path' | 'xdg_runtime_dir'
>
