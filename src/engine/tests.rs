//! Tests of the engine without Python.

use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::{SmallVec, smallvec};

use super::{Call, Handle, Input, Meta, Node, Output, Pick, Pool, Value};
use crate::kernels::{Arg, Operator, find};
use crate::value::{Buffer, Cause, DType, Desc, Device, Layout, Sample};

const LONG: Duration = Duration::from_secs(20);

fn meta(ndim: usize) -> Meta {
    Meta {
        dtype: Some(DType::I64),
        ndim: Some(ndim),
        layout: Layout::default(),
        device: Device::Cpu,
        uniform: true,
    }
}

fn sample(numbers: &[i64]) -> Sample {
    let buffer = Buffer::new(8 * numbers.len()).unwrap();
    // SAFETY: the buffer is new and has room for all numbers.
    unsafe { buffer.as_ptr().cast::<i64>().copy_from(numbers.as_ptr(), numbers.len()) };
    Sample::new(Desc::new(DType::I64, &[numbers.len()]), buffer, 0).unwrap()
}

fn batch(rows: &[&[i64]]) -> Handle {
    Value::ready(meta(1), rows.iter().map(|row| sample(row)).collect::<Vec<_>>())
}

fn node(pool: &Arc<Pool>, kernel: &str, inputs: &[&Handle], args: &[Arg]) -> (Arc<Node>, Handle) {
    let samples = inputs[0].len();
    let input = |handle: &&Handle| Input { value: handle.value().clone(), pick: Pick::Same };
    let call = Call {
        operator: Operator { name: "test", work: (find(kernel).unwrap().cpu)() },
        inputs: inputs.iter().map(input).collect(),
        data_inputs: inputs.len(),
        args: SmallVec::from_vec(args.to_vec()),
        samples,
        layout: Layout::default(),
        device: Device::Cpu,
        site: 7,
    };
    let (node, mut made) = Node::new(call, [Output { meta: meta(1), samples }], pool.clone());
    (node, made.remove(0))
}

fn run(pool: &Arc<Pool>, kernel: &str, inputs: &[&Handle], args: &[Arg]) -> Handle {
    let (node, made) = node(pool, kernel, inputs, args);
    node.start();
    made
}

/// A copy that takes this many microseconds, on a worker.
fn slow_copy(pool: &Arc<Pool>, input: &Handle, micros: i64) -> Handle {
    run(pool, "probe", &[input], &[Arg::Int(0), Arg::Int(micros)])
}

/// The arguments of `add`: the type it computes in and the type of the result.
fn in_int64() -> [Arg; 2] {
    [(); 2].map(|()| Arg::Int(DType::I64.code().into()))
}

fn add(pool: &Arc<Pool>, left: &Handle, right: &Handle) -> Handle {
    run(pool, "add", &[left, right], &in_int64())
}

fn numbers(value: &Handle) -> Vec<Vec<i64>> {
    assert!(value.wait(LONG), "timed out");
    (0..value.len()).map(|i| value.peek(i).unwrap().unwrap().elements().to_vec()).collect()
}

#[test]
fn results_are_as_if_calls_ran_one_after_another() {
    for threads in [1, 2, 8] {
        let pool = Pool::new(threads);
        let start = batch(&[&[1, 2], &[3], &[]]);
        let mut value = slow_copy(&pool, &start, 300);
        for _ in 0..50 {
            value = add(&pool, &value, &start);
        }
        assert_eq!(numbers(&value), [vec![51, 102], vec![153], vec![]]);
    }
}

#[test]
fn a_failed_sample_fails_what_depends_on_it_with_the_same_fault() {
    let pool = Pool::new(2);
    let start = batch(&[&[1], &[2], &[3]]);
    let actions = Value::ready(
        meta(0),
        [0, 1, 0].map(|action| {
            let mut action = sample(&[action]);
            action.desc.shape.clear();
            action
        }),
    );
    let (node, broken) = node(&pool, "probe", &[&start, &actions], &[Arg::Input(1), Arg::Int(0)]);
    node.start();
    let mut last = broken.clone();
    for _ in 0..10 {
        last = add(&pool, &last, &start);
    }
    assert!(last.wait(LONG));
    let (root, seen) = (broken.fault().unwrap(), last.fault().unwrap());
    assert!(Arc::ptr_eq(&root, &seen));
    assert!(matches!(root.cause, Cause::Argument { name: "action", .. }));
    assert_eq!((root.operator, root.sample, root.site), ("test", Some(1), 7));
    assert_eq!(last.peek(2).unwrap().unwrap().elements::<i64>(), [33]);
}

#[test]
fn a_panic_becomes_a_fault_and_the_engine_survives() {
    let pool = Pool::new(1);
    let start = batch(&[&[1]]);
    let broken = run(&pool, "probe", &[&start], &[Arg::Int(2), Arg::Int(0)]);
    assert!(broken.wait(LONG));
    let fault = broken.fault().unwrap();
    assert!(matches!(&fault.cause, Cause::Internal(text) if text.contains("told to panic")));
    assert_eq!(numbers(&slow_copy(&pool, &start, 0)), [[1]]);
}

#[test]
fn uniform_results_share_one_block() {
    let pool = Pool::new(4);
    let start = batch(&[&[1, 2], &[3, 4], &[5, 6]]);
    let copy = slow_copy(&pool, &start, 100);
    numbers(&copy);
    let samples: Vec<_> = (0..3).map(|i| copy.peek(i).unwrap().unwrap()).collect();
    for (index, sample) in samples.iter().enumerate() {
        assert!(sample.shares_buffer(&samples[0]));
        assert_eq!(sample.offset(), 16 * index);
    }
}

#[test]
fn a_sample_proceeds_while_others_are_still_pending() {
    let pool = Pool::new(1);
    let start = batch(&[&[1], &[2], &[3], &[4]]);
    let slow = slow_copy(&pool, &start, 50_000);
    let sum = add(&pool, &slow, &slow);
    let began = Instant::now();
    while sum.peek(0).is_none() {
        assert!(began.elapsed() < LONG, "timed out");
        std::thread::yield_now();
    }
    assert!(slow.peek(3).is_none(), "sample 0 waited for the last sample");
    assert_eq!(numbers(&sum), [[2], [4], [6], [8]]);
}

#[test]
fn memory_that_nobody_can_read_is_freed_sample_by_sample() {
    let pool = Pool::new(1);
    let start = batch(&[&[1], &[2]]);
    let middle = slow_copy(&pool, &start, 0);
    let end = slow_copy(&pool, &middle, 20_000);
    let weak = Arc::downgrade(middle.value());
    drop(middle);
    assert_eq!(numbers(&end), [[1], [2]]);
    drop(pool);
    let began = Instant::now();
    while weak.strong_count() > 0 {
        assert!(began.elapsed() < LONG, "somebody still holds it");
        std::thread::yield_now();
    }
}

#[test]
fn work_whose_result_was_dropped_is_skipped() {
    let pool = Pool::new(1);
    let start = batch(&[&[1]]);
    let began = Instant::now();
    for _ in 0..100 {
        drop(slow_copy(&pool, &start, 1_000_000));
    }
    assert!(pool.drain(LONG));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn deferred_work_runs_on_demand() {
    let pool = Pool::new(2);
    let start = batch(&[&[1]]);
    let mut chain = start.clone();
    for _ in 0..100_000 {
        let (node, made) = node(&pool, "add", &[&chain, &start], &in_int64());
        made.defer(node);
        chain = made;
    }
    let unread = chain.clone();
    assert!(unread.peek(0).is_none());
    chain.demand().unwrap().start();
    assert_eq!(numbers(&chain), [[100_001]]);
}

#[test]
fn a_long_deferred_chain_is_dropped_without_overflowing_the_stack() {
    let pool = Pool::new(1);
    let mut chain = batch(&[&[1]]);
    for _ in 0..200_000 {
        let (node, made) = node(&pool, "copy", &[&chain], &[]);
        made.defer(node);
        chain = made;
    }
    drop(chain);
}

#[test]
fn a_full_pool_accepts_work_again() {
    let pool = Pool::bounded(1, 4, usize::MAX);
    let start = batch(&[&[1]]);
    let made: Vec<_> = (0..4).map(|_| slow_copy(&pool, &start, 5_000)).collect();
    assert!(pool.is_full());
    assert!(pool.wait_for_room(LONG));
    assert!(pool.in_flight() < 4);
    made.iter().for_each(|value| assert_eq!(numbers(value), [[1]]));
}

#[test]
fn a_result_that_differs_from_the_definition_is_an_internal_fault() {
    let pool = Pool::new(1);
    let start = batch(&[&[1]]);
    let broken = run(&pool, "probe", &[&start], &[Arg::Int(3), Arg::Int(0)]);
    assert!(broken.wait(LONG));
    assert!(matches!(broken.fault().unwrap().cause, Cause::Internal(_)));
}

#[test]
fn several_outputs_are_filled_together() {
    let pool = Pool::new(2);
    let start = batch(&[&[1, 2, 3], &[4]]);
    let call = Call {
        operator: Operator { name: "test", work: (find("probe_pair").unwrap().cpu)() },
        inputs: smallvec![Input { value: start.value().clone(), pick: Pick::Same }],
        data_inputs: 1,
        args: smallvec![],
        samples: 2,
        layout: Layout::default(),
        device: Device::Cpu,
        site: 0,
    };
    let output = || Output { meta: meta(1), samples: 2 };
    let (node, made) = Node::new(call, [output(), output()], pool);
    node.start();
    assert_eq!(numbers(&made[0]), [[3], [1]]);
    assert_eq!(numbers(&made[1]), [vec![1, 2, 3], vec![4]]);
}

#[test]
fn work_that_somebody_waits_for_runs_first() {
    let pool = Pool::new(1);
    let input = batch(&[&[1], &[2]]);
    let first = slow_copy(&pool, &input, 1000);
    let others: Vec<_> = (0..50).map(|_| slow_copy(&pool, &input, 5000)).collect();
    let urgent = slow_copy(&pool, &slow_copy(&pool, &input, 100), 100);
    urgent.hasten();
    assert_eq!(numbers(&urgent), [[1], [2]]);
    assert!(others.iter().filter(|other| !other.is_finished()).count() > 25);
    assert!(others.into_iter().chain([first]).all(|other| other.wait(LONG)));
}

#[test]
fn results_of_another_pool_are_used_in_order() {
    let (reading, pool) = (Pool::new(1), Pool::new(1));
    let input = batch(&[&[1], &[2], &[3], &[4]]);
    let read: Vec<_> = (0..20).map(|_| slow_copy(&reading, &input, 50)).collect();
    let used: Vec<_> = read.iter().map(|read| slow_copy(&pool, read, 2000)).collect();
    assert!(used[0].wait(LONG));
    assert!(used[10..].iter().all(|later| !later.is_finished()));
    assert!(used.iter().all(|used| used.wait(LONG)));
}
