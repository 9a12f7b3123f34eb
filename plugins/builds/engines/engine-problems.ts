import { problemTable } from 'busbar/sdk'

/** What goes wrong with build engines, and in them. */
export const buildEngineProblems = problemTable({
  command: [
    422,
    'E_BUILD_COMMAND',
    'the build stopped: {command} ended with exit code {code}; the lines before this one in the build log say why'
  ],
  sshKey: [
    422,
    'E_BUILD_SSH_KEY',
    'the Dockerfile {dockerfile} mounts a key for SSH ({id}) that is required, and there is none: either the application has no deploy key (make one with POST …/deploy-key), or the mount names another id than default'
  ],
  killed: [
    422,
    'E_BUILD_KILLED',
    'the build stopped: {command} was killed (exit code {code}), most likely because it needed more memory than the {memory} MiB a build may use',
    'make the step need less, or raise memory_mib of the builds plugin'
  ],
  dockerfile: [422, 'E_BUILD_DOCKERFILE', 'the Dockerfile {dockerfile} is not valid: {reason}'],
  steps: [
    422,
    'E_BUILD_STEPS',
    'more steps of {dockerfile} run at once than the build engine of this project has addresses for, which are {most} for all of its builds: have some stages wait for others, or build them one after another'
  ],
  layers: [
    422,
    'E_BUILD_LAYERS',
    'the image of {dockerfile} has more layers than an engine stacks upon one another, which are about 125 with those of its base',
    'put several commands into one RUN, and several files into one COPY'
  ],
  copy: [
    422,
    'E_BUILD_COPY',
    'the build stopped: {reason}; the file must be inside the build context and must not be left out by .dockerignore'
  ],
  base: [
    409,
    'E_BUILD_BASE',
    'the build stopped, as an image that it needs did not come: {reason}',
    'check the name and tag in the Dockerfile, or load the image into the engine'
  ],
  baseDenied: [
    409,
    'E_BUILD_BASE',
    'the build stopped, as a registry does not hand out an image that it needs to everybody, and neither the project nor the installation has an account for it: {reason}',
    'check the name and tag in the Dockerfile, give the project an account of that registry (PUT /api/projects/<id>/registries), or load the image into the engine'
  ],
  frontEndMissing: [
    409,
    'E_BUILD_FRONT_END',
    'the front-end {image}, by which railpack builds, cannot be had in the build engine of this project: {reason}',
    'load it into the Docker Engine of the platform (docker pull {image}), from which build engines are given it, or name another by railpack_frontend of the builds plugin'
  ],
  diskFull: [
    507,
    'E_ENGINE_DISK_FULL',
    'the build stopped, as the disk of its build engine is full: {reason}',
    'free space (docker system df shows what takes it), or clear the cache of the applications of this project'
  ],
  failed: [422, 'E_BUILD_FAILED', 'the build failed: {reason}'],
  missing: [
    409,
    'E_BUILD_ENGINE_MISSING',
    'there is no build engine of the kind that build_engine of the builds plugin asks for: {reason}',
    'load its image into the engine, or set build_engine to auto'
  ],
  imageSlow: [504, 'E_BUILD_ENGINE_MISSING', 'the registry of {image} took longer than {seconds} s'],
  away: [
    503,
    'E_BUILD_ENGINE',
    'the build engine of this project does not start: {reason}',
    'build again, and if it stays so, set build_engine of the builds plugin to classic and see the log of the platform'
  ],
  notEmptied: [
    503,
    'E_BUILD_ENGINE',
    'the cache of the build engine of this project is not gone yet: {reason}'
  ],
  cut: [
    502,
    'E_BUILD_ENGINE',
    'the build engine of this project ended during the build, which {why}',
    'build again'
  ],
  result: [
    502,
    'E_BUILD_ENGINE_RESULT',
    'what the build engine of this project made is no image as it should be, and is not used: {reason}',
    'build again, and if it stays so, report it with the version of the engine'
  ]
})
